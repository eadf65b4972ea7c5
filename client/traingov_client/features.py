"""What the governor may know of a model, read from the model where it says so; nothing is guessed.

Standard library only.
"""

from typing import Any, Dict, List, Optional, Sequence, Union

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
# Where the configuration of a model of several parts keeps that of the part that reads tokens.
_TEXT_PARTS = ("text_config", "language_config", "decoder", "encoder")
_ATTENTION = "MultiheadAttention"


def features_of(model: Any) -> Dict[str, Union[str, int]]:
    """``{"model_type", "layers", "hidden_size"}`` of ``model`` (its ``config``), a configuration or a mapping.

    ``model_type`` is the configuration's own word, such as "bert" or "gpt_neox". A PyTorch module without a
    configuration is read too where its blocks are alike and hold a ``MultiheadAttention``: their number and their
    width. What is not said is left out; pass the result to ``register(features=...)``. The mean sequence length is
    measured: report it with each step.
    """
    model = _unwrapped(model)
    config = getattr(model, "config", model)
    found: Dict[str, Union[str, int]] = {}
    layers, hidden = _number(config, _LAYERS), _number(config, _HIDDEN)
    module = hasattr(config, "named_modules")
    for name in () if module else _TEXT_PARTS:
        part = _get(config, name)
        if part is not None and not isinstance(part, (str, int, float)):
            layers = layers if layers is not None else _number(part, _LAYERS)
            hidden = hidden if hidden is not None else _number(part, _HIDDEN)
    if module and (layers is None or hidden is None):
        layers, hidden = _blocks(config)
    if layers is not None:
        found["layers"] = layers
    if hidden is not None:
        found["hidden_size"] = hidden
    kind = _get(config, "model_type")
    if isinstance(kind, str) and kind:
        found["model_type"] = kind
    return found


def signature_of(model: Any, optimizer: Any = None, input_shape: Any = None) -> Dict[str, str]:
    """``{"architecture", "precision", "optimizer", "input_shape"}`` of a PyTorch module: ``register(signature=...)``.

    The architecture is the class and the number of parameters ("ResNet-11689512p"), the precision that of most
    parameters ("float32"; under autocast say so yourself), the optimizer its class ("adamw").
    """
    model = _unwrapped(model)
    found: Dict[str, str] = {}
    counts: Dict[str, int] = {}
    if hasattr(model, "parameters"):
        for parameter in model.parameters():
            kind = str(parameter.dtype).replace("torch.", "")
            counts[kind] = counts.get(kind, 0) + int(parameter.numel())
    if counts:
        found["architecture"] = "%s-%dp" % (type(model).__name__, sum(counts.values()))
        found["precision"] = max(sorted(counts), key=lambda kind: counts[kind])
    if optimizer is not None:
        if type(optimizer).__name__ == "AcceleratedOptimizer":
            optimizer = optimizer.optimizer
        found["optimizer"] = type(optimizer).__name__.lower()
    if input_shape is not None:
        found["input_shape"] = input_shape if isinstance(input_shape, str) else "x".join(str(n) for n in input_shape)
    return found


def _unwrapped(model: Any) -> Any:
    """The module inside DistributedDataParallel, DataParallel or torch.compile."""
    while True:
        if type(model).__name__ in ("DistributedDataParallel", "DataParallel") and hasattr(model, "module"):
            model = model.module
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod
        else:
            return model


def _blocks(model: Any) -> List[Optional[int]]:
    """Number and width of a module's blocks with attention: [layers, hidden size], each None where it is not clear."""
    blocks: Dict[str, int] = {}
    widths = set()
    for name, module in model.named_modules():
        if type(module).__name__ != _ATTENTION:
            continue
        # "encoder.layers.3.self_attn" is in block 3 of "encoder.layers". A decoder's block has two of them.
        parts = name.split(".")
        numbers = [i for i, part in enumerate(parts) if part.isdigit()]
        if not numbers:
            return [None, None]
        stack = ".".join(parts[: numbers[-1]])
        blocks[stack] = max(blocks.get(stack, 0), int(parts[numbers[-1]]) + 1)
        widths.add(module.embed_dim)
    if len(blocks) != 1 or len(widths) != 1:
        return [None, None]
    return [next(iter(blocks.values())), int(next(iter(widths)))]


def _get(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _number(config: Any, names: Sequence[str]) -> Optional[int]:
    for name in names:
        value = _get(config, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
