"""Checks of what a script passes to ``register``: a slip is told at the start, before hours of training."""

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

POLICIES = ("joint", "energy", "fixed", "observe")
OBJECTIVES = ("time", "energy", "edp")
RULES = ("sqrt", "linear", "none")
MAX_LIST = 64
MAX_TEXT = 256
MAX_BATCH = 1000000
MAX_COUNT = 10**15

# Name, kind and largest value of each feature; the daemon takes no others.
_FEATURES: Dict[str, Tuple[type, Optional[float]]] = {
    "model_type": (str, None),
    "layers": (int, 100000),
    "hidden_size": (int, 10000000),
    "seq_len_avg": (float, 1e9),
}
_SIGNATURE = ("architecture", "input_shape", "precision", "optimizer")


def text(name: str, value: Any) -> str:
    """``value`` where it is 1 to 256 printable characters. Raises ValueError."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT or not value.isprintable():
        raise ValueError("%s must be 1 to %d printable characters, not %r" % (name, MAX_TEXT, value))
    return value


def whole(name: str, value: Any, low: int, high: int) -> int:
    """``value`` as an int (a NumPy integer too) in ``low`` .. ``high``. Raises ValueError."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(value, bool) or not low <= number <= high:
        raise ValueError("%s must be a whole number from %d to %d, not %r" % (name, low, high, value))
    return int(number)


def batch_sizes(values: Sequence[int]) -> List[int]:
    """Ascending batch sizes. Raises ValueError."""
    if isinstance(values, (str, bytes)):
        raise ValueError("batch_sizes must be a list of whole numbers, such as [16, 32], not the text %r" % (values,))
    try:
        values = list(values)
    except TypeError:
        raise ValueError("batch_sizes must be a list, such as [16, 32], not %r" % (values,)) from None
    sizes = [whole("batch_sizes", value, 1, MAX_BATCH) for value in values]
    if not 1 <= len(sizes) <= MAX_LIST or len(set(sizes)) != len(sizes):
        raise ValueError("batch_sizes must be 1 to %d different sizes, not %r" % (MAX_LIST, values))
    return sorted(sizes)


def features(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Features without those that are None. Raises ValueError."""
    out: Dict[str, Any] = {}
    for name, value in given.items():
        if name not in _FEATURES:
            raise ValueError("features: %r is not known (known: %s)" % (name, ", ".join(sorted(_FEATURES))))
        kind, high = _FEATURES[name]
        if value is None:
            continue
        if kind is str:
            out[name] = text("features." + name, value)
        elif kind is int:
            out[name] = whole("features." + name, value, 1, int(high or 1))
        else:
            number = float(value)
            if not 0 < number <= (high or 1):
                raise ValueError("features.%s must be a positive number, not %r" % (name, value))
            out[name] = number
    return out


def signature(given: Mapping[str, Any]) -> Dict[str, str]:
    """A signature without what is None. Raises ValueError."""
    for name in given:
        if name not in _SIGNATURE:
            raise ValueError("signature: %r is not known (known: %s)" % (name, ", ".join(_SIGNATURE)))
    return {name: text("signature." + name, value) for name, value in given.items() if value is not None}


def one_of(name: str, value: Any, words: Sequence[str]) -> str:
    """``value`` where it is one of ``words``. Raises ValueError."""
    if value not in words:
        raise ValueError("%s must be one of %s, not %r" % (name, ", ".join(words), value))
    return str(value)


def scaled_learning_rate(learning_rate: float, reference_batch: int, batch_size: int, rule: str) -> float:
    """The learning rate for ``batch_size``, given the one for ``reference_batch`` (TMLR 10/2025).

    ``rule``: "sqrt" (Adam, AdamW), "linear" (SGD) or "none". Raises ValueError for another rule.
    """
    ratio = batch_size / float(reference_batch)
    if rule == "sqrt":
        return learning_rate * math.sqrt(ratio)
    if rule == "linear":
        return learning_rate * ratio
    if rule == "none":
        return learning_rate
    raise ValueError("learning-rate rule %r: use sqrt (Adam, AdamW), linear (SGD) or none" % (rule,))


def printable(text: Any) -> str:
    """``text`` as one line of at most 256 printable characters, as the protocol takes it."""
    return "".join(c if c.isprintable() else " " for c in str(text))[:256].strip()
