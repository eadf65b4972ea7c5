"""The work queue of an emulated GPU: clients in turn, each in order, memory accounted. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from ..surface import Surface


class OutOfMemory(MemoryError):  # noqa: N818  (named as what users call it)
    """The board's memory does not hold what a client asks for."""


@dataclass(slots=True)
class Job:
    """One training step on its way. ``delay_s`` passes before its phases (a batch change, a stall)."""

    ticket: int
    client: str
    surface: Surface
    batch_size: int
    submitted_s: float
    delay_s: float = 0.0


class GpuQueue:
    """Jobs in order per client; clients with work take turns, step by step (CUDA contexts share in time slices)."""

    def __init__(self, memory_total_bytes: int, memory_used_bytes: int) -> None:
        self.memory_total_bytes = memory_total_bytes
        self.memory_base_bytes = memory_used_bytes
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self._allocated: dict[str, tuple[int, Surface, int]] = {}
        self._next_ticket = 1

    @property
    def memory_used_bytes(self) -> int:
        """Memory in use: the system's and every client's."""
        return self.memory_base_bytes + sum(size for size, _, _ in self._allocated.values())

    @property
    def busy_clients(self) -> int:
        """Clients with waiting jobs."""
        return len(self._waiting)

    def allocate(self, client: str, surface: Surface, batch_size: int) -> bool:
        """Make room for ``client`` at ``batch_size``, giving up what it had. True when that is a change.

        Raises OutOfMemory when the board has too little; the client then keeps what it had.
        """
        had = self._allocated.get(client)
        if had is not None and had[1] is surface and had[2] == batch_size:
            return False
        self._allocated[client] = (self.check(client, surface, batch_size), surface, batch_size)
        return True

    def check(self, client: str, surface: Surface, batch_size: int) -> int:
        """Bytes that ``client`` needs at ``batch_size``. Raises OutOfMemory when they are not there."""
        had = self._allocated.get(client)
        need = surface.memory_bytes(batch_size)
        free = self.memory_total_bytes - self.memory_used_bytes + (had[0] if had else 0)
        if need > free:
            raise OutOfMemory(
                f"out of memory: {surface.workload} at batch {batch_size} needs {need / 1e6:.0f} MB, "
                f"{free / 1e6:.0f} MB are free; use a smaller batch size"
            )
        return need

    def allocations(self) -> list[tuple[Surface, int]]:
        """Surface and batch size of every client that has memory."""
        return [(surface, batch_size) for _, surface, batch_size in self._allocated.values()]

    def put(self, client: str, surface: Surface, batch_size: int, t_s: float) -> Job:
        """Queue a step."""
        job = Job(self._next_ticket, client, surface, batch_size, t_s)
        self._next_ticket += 1
        self._waiting.setdefault(client, deque()).append(job)
        return job

    def take(self) -> Job | None:
        """The next step to run: the first of the client whose turn it is, which then goes to the end of the round."""
        if not self._waiting:
            return None
        client, jobs = self._waiting.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._waiting[client] = jobs
        return job

    def release(self, client: str) -> list[int]:
        """A client went away: its memory and its waiting steps go. The tickets dropped."""
        self._allocated.pop(client, None)
        return [job.ticket for job in self._waiting.pop(client, ())]
