"""What the energy policy's tree reads of a model, from a Hugging Face configuration (or anything shaped like one)."""

from typing import Any, Dict, Optional, Sequence, Union

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")


def features_of(model: Any) -> Dict[str, Union[str, int]]:
    """``{"model_type", "layers", "hidden_size"}`` of ``model`` (its ``config``), a configuration or a mapping.

    ``model_type`` is the configuration's own word, such as "bert" or "gpt_neox". What it does not say is left out; pass
    the result to ``register(features=...)``. The mean sequence length is measured: report it with each step.
    """
    config = getattr(model, "config", model)
    found: Dict[str, Union[str, int]] = {}
    layers, hidden = _number(config, _LAYERS), _number(config, _HIDDEN)
    if layers is not None:
        found["layers"] = layers
    if hidden is not None:
        found["hidden_size"] = hidden
    kind = _get(config, "model_type")
    if isinstance(kind, str) and kind:
        found["model_type"] = kind
    return found


def _get(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _number(config: Any, names: Sequence[str]) -> Optional[int]:
    for name in names:
        value = _get(config, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
