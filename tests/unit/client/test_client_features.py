"""Features from configurations shaped as Hugging Face's are; nothing is guessed that they do not say."""

from __future__ import annotations

import types
from typing import Any

import pytest

from traingov_client import features_of, signature_of

BERT = {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "architectures": ["BertForMaskedLM"]}
PYTHIA = {"model_type": "gpt_neox", "num_hidden_layers": 6, "hidden_size": 512}
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768}
T5 = {"model_type": "t5", "num_layers": 6, "d_model": 512}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (BERT, {"model_type": "bert", "layers": 12, "hidden_size": 768}),
        (PYTHIA, {"model_type": "gpt_neox", "layers": 6, "hidden_size": 512}),
        (GPT2, {"model_type": "gpt2", "layers": 12, "hidden_size": 768}),
        (T5, {"model_type": "t5", "layers": 6, "hidden_size": 512}),
        ({"num_hidden_layers": True, "hidden_size": -1, "model_type": ""}, {}),
        ({"hidden_size": 64}, {"hidden_size": 64}),
        ({}, {}),
    ],
)
def test_a_configuration_gives_what_it_says(config: dict[str, Any], expected: dict[str, Any]) -> None:
    assert features_of(config) == expected
    assert features_of(types.SimpleNamespace(**config)) == expected
    assert features_of(types.SimpleNamespace(config=types.SimpleNamespace(**config))) == expected


def test_an_object_without_a_configuration_gives_nothing() -> None:
    assert features_of(object()) == {}


class MultiheadAttention:
    embed_dim = 48


class Module:
    """Shaped as a PyTorch module is."""

    def __init__(self, *names: str, parameters: Any = ()) -> None:
        self._names, self._parameters = names, parameters

    def named_modules(self) -> list[tuple[str, Any]]:
        return [(name, MultiheadAttention()) for name in self._names]

    def parameters(self) -> Any:
        return self._parameters


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["encoder.layers.0.self_attn", "encoder.layers.1.self_attn"], {"layers": 2, "hidden_size": 48}),
        (["layers.0.self_attn", "layers.0.multihead_attn"], {"layers": 1, "hidden_size": 48}),
        (["encoder.layers.0.self_attn", "decoder.layers.0.self_attn"], {}),
        (["attention"], {}),
        ([], {}),
    ],
)
def test_alike_blocks_with_attention_are_counted_and_others_are_not_guessed(
    names: list[str], expected: dict[str, Any]
) -> None:
    assert features_of(Module(*names)) == expected


def test_a_model_of_several_parts_is_described_by_the_one_that_reads_tokens() -> None:
    config = {"model_type": "llava", "text_config": {"model_type": "llama", "num_hidden_layers": 22, "hidden_size": 64}}
    assert features_of(config) == {"model_type": "llava", "layers": 22, "hidden_size": 64}


def parameter(n: int, dtype: str = "torch.float32") -> Any:
    return types.SimpleNamespace(dtype=dtype, numel=lambda: n)


def test_a_signature_is_read_from_the_module_and_the_optimizer() -> None:
    class AdamW:
        pass

    model = Module(parameters=[parameter(3, "torch.float32"), parameter(40, "torch.bfloat16")])
    assert signature_of(model, AdamW(), (3, 224, 224)) == {
        "architecture": "Module-43p", "precision": "bfloat16", "optimizer": "adamw", "input_shape": "3x224x224",
    }  # fmt: skip


def test_wrappers_for_several_processes_and_compilation_are_looked_through() -> None:
    class DistributedDataParallel:
        module = types.SimpleNamespace(_orig_mod=Module("layers.0.attention", parameters=[parameter(5)]))

    assert signature_of(DistributedDataParallel()) == {"architecture": "Module-5p", "precision": "float32"}
    assert features_of(DistributedDataParallel()) == {"layers": 1, "hidden_size": 48}


def test_what_says_nothing_of_itself_has_an_empty_signature() -> None:
    assert signature_of(object()) == {}
