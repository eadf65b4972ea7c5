"""Data-parallel training on one board: which process this is, and what process 0 tells the others."""

import os
from typing import Any, NamedTuple

Ranks = NamedTuple("Ranks", [("rank", int), ("world", int)])


def ranks() -> Ranks:
    """This process among those of ``torch.distributed``; (0, 1) where it is not in use.

    Raises ValueError where the processes are spread over several machines: a governor knows one board.
    """
    from torch import distributed  # noqa: PLC0415  needed here only

    if not distributed.is_available() or not distributed.is_initialized():
        return Ranks(0, 1)
    world = distributed.get_world_size()
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    if here != world:
        raise ValueError(
            "traingov governs one board: %d of %d processes run here; start them on one machine" % (here, world)
        )
    return Ranks(distributed.get_rank(), world)


def from_first(value: int, model: Any) -> int:
    """``value`` of process 0, in every process. All must call it."""
    import torch  # noqa: PLC0415  needed here only
    from torch import distributed  # noqa: PLC0415  needed here only

    device = "cpu"
    if distributed.get_backend() == "nccl":
        device = next(model.parameters()).device
    told = torch.tensor([value], dtype=torch.int64, device=device)
    distributed.broadcast(told, 0)
    return int(told.item())
