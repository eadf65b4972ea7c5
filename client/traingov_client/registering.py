"""The entry point: ``register``."""

import os
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from . import arguments
from .job import Job

DEFAULT_SOCKET = "/run/traingov/traingov.sock"


def register(
    workload: str,
    batch_sizes: Sequence[int],
    batch_size: Optional[int] = None,
    features: Optional[Mapping[str, Any]] = None,
    sync: Optional[Callable[[], Any]] = None,
    *,
    socket: Optional[str] = None,
    samples_total: Optional[int] = None,
    samples_done: int = 0,
    policy: Optional[str] = None,
    objective: Optional[str] = None,
    learning_rate_rule: str = "sqrt",
    signature: Optional[Mapping[str, Any]] = None,
    resume: bool = False,
    timeout_s: float = 1.0,
) -> Job:
    """Register this process as a training job, waiting ``timeout_s`` seconds at most.

    ``batch_sizes`` are those the job can train with, ``batch_size`` the one to start with where nobody advises
    (default: the largest). ``features`` may hold model_type, layers, hidden_size, seq_len_avg; ``signature``
    architecture, input_shape, precision, optimizer. ``sync`` waits for the device (torch.cuda.synchronize). ``socket``
    defaults to $TRAINGOV_SOCKET, then /run/traingov/traingov.sock. A job that goes on from a checkpoint gives
    ``samples_done`` and ``resume=True``.

    Raises ValueError for arguments that make no sense. A daemon that is absent, slow or broken raises nothing.
    """
    sizes = arguments.batch_sizes(batch_sizes)
    first = sizes[-1] if batch_size is None else arguments.whole("batch_size", batch_size, 1, arguments.MAX_BATCH)
    if first not in sizes:
        raise ValueError("batch_size must be one of batch_sizes %r, not %r" % (sizes, batch_size))
    if sync is not None and not callable(sync):
        raise ValueError("sync must be a function without arguments, such as torch.cuda.synchronize, not %r" % (sync,))
    fields: Dict[str, Any] = {
        "workload": arguments.text("workload", workload),
        "batch_sizes": sizes,
        "learning_rate_rule": arguments.one_of("learning_rate_rule", learning_rate_rule, arguments.RULES),
        "features": arguments.features(features or {}),
        "signature": arguments.signature(signature or {}),
    }
    if samples_total is not None:
        fields["samples_total"] = arguments.whole("samples_total", samples_total, 1, arguments.MAX_COUNT)
    if policy is not None:
        fields["policy"] = arguments.one_of("policy", policy, arguments.POLICIES)
    if objective is not None:
        fields["objective"] = arguments.one_of("objective", objective, arguments.OBJECTIVES)
    done = arguments.whole("samples_done", samples_done, 0, arguments.MAX_COUNT)
    path = socket or os.environ.get("TRAINGOV_SOCKET") or DEFAULT_SOCKET
    return Job(fields, first, done, bool(resume), sync, path, timeout_s)
