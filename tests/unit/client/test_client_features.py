"""Features from configurations shaped as Hugging Face's are; nothing is guessed that they do not say."""

from __future__ import annotations

import types
from typing import Any

import pytest

from traingov_client import features_of

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
