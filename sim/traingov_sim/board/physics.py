"""The virtual board: a pure discrete-event core, with time passed in.

``advance(t)`` carries out every event up to ``t`` in order: phase ends, clock changes, and ticks of the power
monitor's update period, at which temperature, governor, noise and sensor move. The same core runs behind a process
in real time and in a twin as fast as the machine goes. Between events power is constant, so energy is exact.
Everything here is simulated.
"""

from __future__ import annotations

import math
import random
from collections import deque

from ..surface import Phase, Surface
from .battery import Battery
from .boardspec import BoardSpec
from .gpuclock import GpuClock
from .gpuqueue import GpuQueue, Job, OutOfMemory
from .meter import Meter, Watts
from .observed import Contention, Snapshot, Truth
from .overcurrent import SLOWDOWN, OverCurrent
from .powermodel import PowerModel
from .sensor import PowerSensor
from .surroundings import StepCosts, Surroundings
from .thermal import Thermal

__all__ = ["Contention", "OutOfMemory", "Snapshot", "Truth", "VirtualBoard"]

KEPT = 20_000
ACTIVE_FOR_S = 1.0


class VirtualBoard:
    """One board. Times are seconds on any monotonic scale; they never run backwards."""

    def __init__(
        self, spec: BoardSpec, rng_seed: int = 0, start_s: float = 0.0, switch_delay_s: float | None = None
    ) -> None:
        self.spec = spec
        self.t_s = start_s
        self.clock = GpuClock(spec.gpu, switch_delay_s)
        self.queue = GpuQueue(spec.memory_total_bytes, spec.memory_used_bytes)
        self.thermal = Thermal(spec.thermal)
        self._rng = random.Random(f"work {rng_seed}")  # noise draws once a tick, work once a step: kept apart
        self._noise_rng = random.Random(f"noise {rng_seed}")
        self.sensor = PowerSensor(spec.rails, spec.sensor, random.Random(f"sensor {rng_seed}"))
        self.contention = Contention()
        self.battery: Battery | None = None
        self.over_current = OverCurrent(spec.rails, spec.over_current_counters, spec.sensor.update_s)
        self.costs = StepCosts(spec)
        self.power_mode = spec.power_mode(spec.default_power_mode)
        self.clock_history: deque[tuple[float, int]] = deque([(start_s, self.clock.hz)], maxlen=KEPT)
        self.finished: deque[tuple[int, float]] = deque(maxlen=KEPT)
        self._done: dict[int, float] = {}
        self._unfinished: set[int] = set()
        self._clients: dict[str, float] = {}
        self._job: Job | None = None
        self._phases: tuple[Phase, ...] = ()
        self._phase = -1
        self._phase_end = math.inf
        self._time_factor = self._power_factor = 1.0
        self._meter = Meter()
        self._steps = self._samples = self._stalls = 0
        period = spec.sensor.update_s
        self._model = PowerModel(spec.power, spec.rails, period, self._noise_rng)
        self._model.move(self.thermal.die_celsius)
        self._power = self._power_now()
        self._tick_index, self._start_s = 0, start_s
        self._next_tick = start_s + period
        self._cpu_load = [0.02] * spec.cpu.count
        self.set_power_mode(spec.default_power_mode, start_s)
        self.sensor.update(self._model.rails_w(self._power))

    # What the outside does

    def submit(self, surface: Surface, batch_size: int, t_s: float, client: str = "") -> int:
        """Queue one training step at ``t_s``; its ticket. Returns at once, as a kernel launch does.

        A time before the board's present counts as the present. Raises OutOfMemory.
        """
        if t_s > self.t_s:
            self.advance(t_s)
        self.costs.phases(surface, batch_size, self.clock.hz)  # what cannot be disturbed fails here, not in mid-run
        changed = self.queue.allocate(client, surface, batch_size)
        job = self.queue.put(client, surface, batch_size, max(t_s, self.t_s))
        self._unfinished.add(job.ticket)
        if changed:
            job.delay_s = self.spec.power.batch_change_s
        if self._job is None:
            self._start_next()
        return job.ticket

    def completion(self, ticket: int) -> float | None:
        """When the step ended, None while it has not. KeyError for an unknown, dropped or long forgotten ticket."""
        if ticket in self._done:
            return self._done[ticket]
        if ticket in self._unfinished:
            return None
        raise KeyError(f"no step has ticket {ticket}")

    def release(self, client: str) -> None:
        """The client's process ended: waiting steps and memory go; a running step runs out."""
        self._unfinished.difference_update(self.queue.release(client))
        self._clients.pop(client, None)

    def set_bounds(self, min_hz: int, max_hz: int, t_s: float) -> None:
        """Write both devfreq bounds; they reach the clock after the board's switch delay."""
        self.advance(max(t_s, self.t_s))
        self.clock.set_bounds(min_hz, max_hz, self.t_s)
        self._bounds_written()

    def write_devfreq(self, name: str, text: str, t_s: float) -> None:
        """Write to a file of the GPU's devfreq node, as a process on the board does. Raises OSError as the kernel."""
        self.advance(max(t_s, self.t_s))
        self.clock.write(name, text, self.t_s)
        self._bounds_written()

    def set_power_mode(self, mode_id: int, t_s: float) -> None:
        """Change the nvpmodel mode: the GPU's bounds are reset to it. Raises ValueError for an unknown mode."""
        mode = self.spec.power_mode(mode_id)
        self.advance(max(t_s, self.t_s))
        self.power_mode = mode
        self.clock.set_mode_cap(mode.gpu_max_hz, self.t_s)
        self._bounds_written()

    def set_surroundings(self, surroundings: Surroundings, t_s: float) -> None:
        """Change what lies outside the jobs; a running step feels it at once.

        Raises ValueError, changing nothing, where a job's surface cannot be disturbed this way.
        """
        self.advance(max(t_s, self.t_s))
        self.costs.surround(surroundings, self.queue.allocations(), self.clock.hz)
        self._model.others = self.costs.others_w
        self._rephase()

    def set_follows(self, follows: bool, t_s: float) -> None:
        """Whether the GPU's clock follows its bounds. Where not, files show what was written and nothing happens."""
        self.advance(max(t_s, self.t_s))
        self.clock.follows = follows
        if self.clock.take_effect(self.t_s):
            self._clock_moved()

    # Time

    def next_event_s(self) -> float:
        """When the board changes next by itself. Never infinite: ticks go on."""
        return min(self._phase_end, self.clock.next_change_s, self._next_tick)

    def advance(self, t_s: float) -> None:
        """Let time pass until ``t_s``. Raises ValueError when that lies in the past."""
        if t_s < self.t_s:
            raise ValueError(f"virtual board: time runs forwards; {t_s:.6f} s lies before {self.t_s:.6f} s")
        while True:
            event = min(self._phase_end, self.clock.next_change_s, self._next_tick)
            if event > t_s:
                break
            self._pass(event)
            if event == self._phase_end:
                self._phase_ended()
            elif event == self.clock.next_change_s:
                if self.clock.take_effect(event):
                    self._clock_moved()
            else:
                self._tick()
        self._pass(t_s)

    def run_until(self, ticket: int) -> float:
        """Advance until the step has ended; when it did. For a twin that runs as fast as it can."""
        while (done := self.completion(ticket)) is None:
            self.advance(self.next_event_s())
        return done

    # What the outside sees

    def sensors(self, t_s: float) -> Snapshot:
        """What the board's sensors show at ``t_s``."""
        if t_s > self.t_s:
            self.advance(t_s)
        temperatures = tuple(map(self.thermal.read, self.spec.zones))
        online = self.power_mode.cpus
        cpus = tuple(load if i < online else None for i, load in enumerate(self._cpu_load))
        return Snapshot(
            self.t_s,
            self.sensor.readings,
            self.clock.hz,
            self.clock.load,
            temperatures,
            cpus,
            self.queue.memory_used_bytes,
            self.costs.emc_hz,
            self.thermal.throttle_steps,
            self.over_current.counts,
        )

    def truth(self, t_s: float) -> Truth:
        """The true counters at ``t_s``."""
        self.advance(max(t_s, self.t_s))
        input_w, gpu_w, cpu_w = self._power
        return Truth(
            self.t_s,
            self._meter.input_j,
            self._meter.compute_j,
            input_w,
            gpu_w + cpu_w,
            self.clock.hz,
            self.thermal.die_celsius,
            self._steps,
            self._samples,
            self._meter.busy_s,
            self._stalls,
        )

    # Inside

    def _pass(self, to_s: float) -> None:
        dt = to_s - self.t_s
        if dt > 0:
            active = self._job is not None
            busy = active and self._phase >= 0 and self._phases[self._phase].gpu_busy
            self._meter.add(dt, self._power, busy, active)
        self.t_s = to_s

    def _start_next(self) -> None:
        job = self._job = self.queue.take()
        if job is None:
            self._phase_end = math.inf
            self._phase, self._phases = -1, ()
            self._power = self._power_now()
            return
        power, now = self.spec.power, self.t_s
        self._clients[job.client] = now
        company = sum(1 for seen in self._clients.values() if now - seen < ACTIVE_FOR_S) - 1
        factor = 1 + power.sharing_penalty * company
        if power.step_jitter:
            factor *= math.exp(self._rng.gauss(0.0, power.step_jitter))
        self._power_factor = 1.0
        if job.batch_size >= self.contention.from_batch_size:
            factor *= self.contention.time_factor
            self._power_factor = self.contention.power_factor
        self._time_factor = factor
        self._phases = self.costs.phases(job.surface, job.batch_size, self.clock.hz)
        delay = job.delay_s
        if power.stalls_per_s:
            length = sum(p.duration_s for p in self._phases) * factor
            if self._rng.random() < -math.expm1(-power.stalls_per_s * length):
                delay += self._rng.uniform(*power.stall_s)
                self._stalls += 1
        self._phase = -1
        self._phase_end = now + delay
        self._power = self._power_now()
        if delay <= 0:
            self._phase_ended()

    def _phase_ended(self) -> None:
        self._phase += 1
        if self._phase < len(self._phases):
            phase = self._phases[self._phase]
            self._phase_end = self.t_s + phase.duration_s * self._time_factor * self._skip(phase)
            self._power = self._power_now()
            return
        job = self._job
        assert job is not None
        self._unfinished.discard(job.ticket)
        self._done[job.ticket] = self.t_s
        if len(self._done) > KEPT:
            del self._done[next(iter(self._done))]
        self.finished.append((job.ticket, self.t_s))
        self._steps += 1
        self._samples += job.batch_size
        self._start_next()

    def _clock_moved(self) -> None:
        self.clock_history.append((self.t_s, self.clock.hz))
        self._rephase()

    def _skip(self, phase: Phase) -> float:
        """By how much skipped clock pulses stretch the phase."""
        return SLOWDOWN if phase.gpu_busy and self.over_current.throttling else 1.0

    def _rephase(self) -> None:
        """Rescale what is left of the running phase to the clock and the surroundings of now."""
        job = self._job
        if job is None:
            self._power = self._power_now()
            return
        new = self.costs.phases(job.surface, job.batch_size, self.clock.hz)
        if len(new) != len(self._phases):
            raise ValueError(
                f"surface {job.surface.workload}: batch {job.batch_size} has {len(self._phases)} phases at one clock "
                f"and {len(new)} at another; give it the same at every clock"
            )
        old, self._phases = self._phases, new
        if self._phase < 0:
            self._power = self._power_now()
            return
        before, after = old[self._phase].duration_s, new[self._phase].duration_s
        if before > 0:
            self._phase_end = self.t_s + (self._phase_end - self.t_s) * after / before
        self._power = self._power_now()

    def _tick(self) -> None:
        period = self.spec.sensor.update_s
        self._tick_index += 1
        self._next_tick = self._start_s + (self._tick_index + 1) * period
        mean_w, busy, host = self._meter.take_means(period)
        rails_w = self._model.rails_w(mean_w)
        self.sensor.update(rails_w)
        if self.over_current.tick(rails_w, mean_w[0]) and self._phase >= 0 and self._phases[self._phase].gpu_busy:
            stretch = SLOWDOWN if self.over_current.throttling else 1 / SLOWDOWN
            self._phase_end = self.t_s + (self._phase_end - self.t_s) * stretch
        if self.battery is not None:
            self.battery.advance(self.t_s, period, mean_w[0])
        steps = self.thermal.throttle_steps
        self.thermal.advance(period, mean_w[0], mean_w[1] + mean_w[2], len(self.clock.table) - 1)
        if self.thermal.throttle_steps != steps:
            self.clock.clamp_thermally(self.thermal.throttle_steps)
        if self._tick_index % 5 == 0:
            # One core drives the GPU; the others idle along.
            draw = self._noise_rng.random
            self._cpu_load = [0.1 * draw() ** 2 for _ in self._cpu_load]
            self._cpu_load[0] = min(1.0, self._cpu_load[0] + 0.25 * busy + 0.9 * host)
        self._model.move(self.thermal.die_celsius)
        if self.clock.tick(period, busy):
            self._clock_moved()
        else:
            self._power = self._power_now()

    def _bounds_written(self) -> None:
        if self.clock.next_change_s <= self.t_s and self.clock.take_effect(self.t_s):
            self._clock_moved()

    def _power_now(self) -> Watts:
        if self._phase >= 0:
            phase = self._phases[self._phase]
            return self._model.loaded(phase, self._power_factor, 1 / self._skip(phase))
        return self._model.idle(self.clock.hz / self.clock.table[-1])
