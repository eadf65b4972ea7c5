"""Learning rates that follow the batch size, in optimizers and schedulers as PyTorch has them (imports neither)."""

from typing import Any, Iterable, List

from .. import arguments

_TAG = "traingov_factor"
# What schedulers keep in an optimizer's groups. OneCycleLR reads its bounds there at every step.
_IN_GROUPS = ("lr", "initial_lr", "max_lr", "min_lr")


def rule_for(optimizer: Any) -> str:
    """ "linear" for SGD, "sqrt" for all others: Adam and its relatives (TMLR 10/2025)."""
    return "linear" if type(bare(optimizer)).__name__ == "SGD" else "sqrt"


def bare(wrapped: Any) -> Any:
    """An optimizer or scheduler without the wrapper that Accelerate puts around it."""
    return getattr(wrapped, "optimizer", wrapped) if type(wrapped).__name__ == "AcceleratedOptimizer" else wrapped


class LearningRates:
    """Multiplies the learning rates of optimizers and schedulers by the factor that a batch size asks for.

    The rates that it finds suit ``reference_batch``. Each group and each scheduler carries the factor that is in it now
    ("traingov_factor"), and so does what their ``state_dict()`` saves: after loading a checkpoint, in whatever order,
    the next ``follow`` knows what it holds.
    """

    def __init__(self, optimizers: Iterable[Any], schedulers: Iterable[Any], reference_batch: int, rule: str) -> None:
        arguments.one_of("rule", rule, arguments.RULES)
        self._optimizers = [bare(optimizer) for optimizer in optimizers]
        self._schedulers = list(_flat(schedulers))
        self._reference = arguments.whole("reference_batch", reference_batch, 1, arguments.MAX_BATCH)
        self._rule = rule

    def follow(self, batch_size: int) -> None:
        """Set all rates for ``batch_size``. Costs little where they are so already."""
        factor = arguments.scaled_learning_rate(1.0, self._reference, batch_size, self._rule)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                ratio = factor / group.get(_TAG, 1.0)
                if ratio != 1.0:
                    for name in _IN_GROUPS:
                        if name in group:
                            group[name] = _times(group[name], ratio)
                group[_TAG] = factor
        for scheduler in self._schedulers:
            ratio = factor / getattr(scheduler, _TAG, 1.0)
            if ratio != 1.0:
                for name in ("base_lrs", "_last_lr", "max_lrs", "min_lrs"):
                    values = getattr(scheduler, name, None)
                    if isinstance(values, list):
                        setattr(scheduler, name, [_times(value, ratio) for value in values])
            setattr(scheduler, _TAG, factor)


def _times(value: Any, ratio: float) -> Any:
    # A tensor learning rate (capturable optimizers) must stay the same tensor: a captured graph reads it.
    if hasattr(value, "mul_"):
        return value.mul_(ratio)
    return value * ratio


def _flat(schedulers: Iterable[Any]) -> List[Any]:
    """Schedulers and those inside them (SequentialLR, ChainedScheduler; Accelerate's wrapper)."""
    found: List[Any] = []
    for given in schedulers:
        scheduler = getattr(given, "scheduler", given) if type(given).__name__ == "AcceleratedScheduler" else given
        found.append(scheduler)
        found.extend(_flat(getattr(scheduler, "_schedulers", ())))
    return found
