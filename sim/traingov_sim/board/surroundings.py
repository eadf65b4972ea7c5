"""What lies outside a job and changes what its steps cost: other processes, the memory's clock, its libraries. Pure.

The surfaces know what of a step waits for memory (``surfaces.generator``), so a disturbance moves the points by
different factors, as a real one does: memory contention hits points that are bound by memory, a cache that is too
small hits large batches. Sizes are assumptions, given by whoever sets a disturbance; the mechanisms are these:

- another process takes a share of the memory's bandwidth: what waits for memory takes 1 / (1 - share) as long;
- a working set that outgrows its part of the cache: of each sample beyond ``cache_batch_size``, the traffic that the
  cache used to keep goes to memory too, ``cache_spill`` times the traffic there was;
- a cap on the memory's clock (EMC): bandwidth in proportion to it; so is the power at full traffic and what the
  interface draws anyway (``PowerSpec.emc_w``, an assumption);
- a library update: each kind of work takes its own factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..surface import Phase, Scalable, Scales, Surface
from .boardspec import BoardSpec
from .meter import Watts


@dataclass(frozen=True)
class Surroundings:
    """``memory_taken``: share of the memory's bandwidth that others use, 0 … 0.95; ``other_cpu_w``: what their work
    draws on the CPU rail. ``cache_spill`` and ``cache_batch_size`` as in the module. ``emc_hz``: cap of the memory's
    clock. ``software``: factors of the times of each kind of work. Raises ValueError for values without sense.
    """

    memory_taken: float = 0.0
    other_cpu_w: float = 0.0
    cache_spill: float = 0.0
    cache_batch_size: int = 0
    emc_hz: int | None = None
    software: Scales = field(default_factory=Scales)

    def __post_init__(self) -> None:
        if not 0 <= self.memory_taken <= 0.95:
            raise ValueError(f"surroundings: memory_taken must lie between 0 and 0.95, not {self.memory_taken!r}")
        if not (0 <= self.other_cpu_w < 1000 and 0 <= self.cache_spill < 1000 and self.cache_batch_size >= 0):
            raise ValueError("surroundings: other_cpu_w, cache_spill and cache_batch_size must not be negative")
        if self.emc_hz is not None and self.emc_hz <= 0:
            raise ValueError(f"surroundings: emc_hz must be above 0, or null, not {self.emc_hz!r}")

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Surroundings:
        """From plain values; ``software`` an object of factors. Raises ValueError naming what is unknown."""
        for kind, given in ((cls, data), (Scales, data.get("software") or {})):
            unknown = set(given) - {f.name for f in fields(kind)}
            if unknown:
                raise ValueError(f"surroundings: nothing called {', '.join(sorted(unknown))}")
        return cls(**{**data, "software": Scales(**(data.get("software") or {}))})

    def scales(self, batch_size: int, emc_share: float) -> Scales:
        """The factors for a step of ``batch_size``, with the memory's clock at ``emc_share`` of its highest."""
        beyond = max(0.0, 1 - self.cache_batch_size / batch_size)
        memory = (1 + self.cache_spill * beyond) / (1 - self.memory_taken) / emc_share
        software = self.software
        return replace(software, memory=software.memory * memory, memory_power=software.memory_power * emc_share)


class Surrounded:
    """A surface as it is in given surroundings: itself a ``Surface``. ``emc_top_hz``: the memory's highest clock.

    Where the surroundings change step costs, ``surface`` must be ``Scalable``: ValueError from ``phases`` else.
    """

    def __init__(self, surface: Surface, surroundings: Surroundings, emc_top_hz: int) -> None:
        self._surface = surface
        self._surroundings = surroundings
        self._emc_share = min(1.0, (surroundings.emc_hz or emc_top_hz) / emc_top_hz)
        self._scaled: dict[int, Surface] = {}

    @property
    def board(self) -> str:
        """Board key."""
        return self._surface.board

    @property
    def workload(self) -> str:
        """Workload name."""
        return self._surface.workload

    def memory_bytes(self, batch_size: int) -> int:
        """Memory that training with ``batch_size`` needs."""
        return self._surface.memory_bytes(batch_size)

    def phases(self, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        """The phases of one step in these surroundings."""
        scaled = self._scaled.get(batch_size)
        if scaled is None:
            scaled = self._scaled[batch_size] = self._scale(batch_size)
        return scaled.phases(batch_size, gpu_frequency_hz)

    def _scale(self, batch_size: int) -> Surface:
        scales = self._surroundings.scales(batch_size, self._emc_share)
        if scales == Scales():
            return self._surface
        if not isinstance(self._surface, Scalable):
            raise ValueError(
                f"surface {self._surface.board}/{self._surface.workload} does not say what of a step waits for memory: "
                "it cannot be disturbed this way"
            )
        return self._surface.scaled(scales)


class StepCosts:
    """What steps cost on a board in its present surroundings, and what is drawn beside them (``others_w``)."""

    def __init__(self, spec: BoardSpec) -> None:
        self._spec = spec
        self._top_hz = spec.emc.frequencies_hz[-1]
        self.surroundings = Surroundings()
        self._calm = True
        self._surrounded: dict[int, tuple[Surface, Surrounded]] = {}

    @property
    def emc_hz(self) -> int:
        """The memory's clock: its cap, or its highest (it is taken to stay high)."""
        return self.surroundings.emc_hz or self._top_hz

    @property
    def others_w(self) -> Watts:
        """Drawn by other processes, less what a slower memory clock saves."""
        cpu_w = self.surroundings.other_cpu_w
        return cpu_w - self._spec.power.emc_w * (1 - self.emc_hz / self._top_hz), 0.0, cpu_w

    def surround(self, surroundings: Surroundings, running: Iterable[tuple[Surface, int]], hz: int) -> None:
        """Change the surroundings; a memory clock off its table becomes the next lower step.

        ``running``: surfaces and batch sizes in use, tried first: ValueError, and no change, where one cannot be
        disturbed.
        """
        if surroundings.emc_hz is not None:
            table = self._spec.emc.frequencies_hz
            emc_hz = max((step for step in table if step <= (surroundings.emc_hz or 0)), default=table[0])
            surroundings = replace(surroundings, emc_hz=emc_hz)
        for surface, batch_size in running:
            Surrounded(surface, surroundings, self._top_hz).phases(batch_size, hz)
        self.surroundings, self._calm = surroundings, surroundings == Surroundings()
        self._surrounded.clear()

    def of(self, surface: Surface) -> Surface:
        """The surface as it is now."""
        if self._calm:
            return surface
        held = self._surrounded.get(id(surface))
        if held is None or held[0] is not surface:
            held = self._surrounded[id(surface)] = (surface, Surrounded(surface, self.surroundings, self._top_hz))
        return held[1]

    def phases(self, surface: Surface, batch_size: int, gpu_frequency_hz: int) -> tuple[Phase, ...]:
        """The phases of one step now."""
        return self.of(surface).phases(batch_size, gpu_frequency_hz)
