"""What must hold of any recording, whatever governor made it (DESIGN 3). Works on the raw JSON lines alone.

1. Order of writes: no written min ever exceeds the written max. 2. No write without a saved original.
3. Cap: the window mean does not stay at or above the cap without a lower clock being asked for.
4. Every wait is bounded: writes are read back, advice is followed, refused or withdrawn.
5. Over-current: while counters rise under a governed job, a lower clock is asked for in time, and no clock at which
   they rose is asked for again within ``retry_s`` (for the same batch sizes, where it is to be avoided).
6. When the last job ended, the knob was given back. 7. Advice names a batch size the job has and can use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .energy import WindowMean


@dataclass(frozen=True)
class Limits:
    """``above_s``: the longest stretch above the cap; it has to leave room for settling and measuring a point."""

    above_s: float = 8.0
    read_back_s: float = 2.0
    follow_s: float = 65.0
    over_current_s: float = 3.0
    late_s: float = 0.5
    retry_s: float = 30.0


@dataclass
class _Watch:
    limits: Limits
    found: list[str] = field(default_factory=list)
    clocks: set[int] = field(default_factory=set)
    lowest_hz: int = 0
    cap_w: float | None = None
    window: WindowMean | None = None
    above_since_s: float | None = None
    knobs: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: tuple[int, int] | None = None
    asked_s: float | None = None
    now_s: float = 0.0
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    advised: dict[str, tuple[int, float]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    ours: bool = False
    policy: str = "joint"
    avoid: bool = True
    dead_s: float = 0.8
    forbidden: tuple[int, float] | None = None  # a clock at which the counters rose, and when
    retry_s: float = 60.0
    rising_since_s: float | None = None
    rose_s: float = float("-inf")
    moved_s: float = float("-inf")
    before_hz: int = 0

    def complain(self, text: str) -> None:
        self.found.append(f"t={self.now_s:.3f} s: {text}")

    # -- events ------------------------------------------------------------------------------------------------
    def event(self, kind: str, e: Mapping[str, Any]) -> None:
        self.now_s = e["t_s"]
        self._waits()
        match kind:
            case "Sample":
                self._sample(e)
            case "CapChanged":
                self.set_cap(e.get("cap"))
            case "JobRegistered":
                policy = e.get("policy") or self.policy
                self.forbidden = self.rising_since_s = None
                self.jobs[e["job"]] = {"sizes": set(e["batch_sizes"]), "batch": e["batch_size"], "policy": policy}
                self.above_since_s = None
            case "PolicyChanged":
                self.policy = e["policy"]
                for job in self.jobs.values():
                    job["policy"] = e["policy"]
            case "JobPaused":
                self.paused.add(e["job"])
            case "JobResumed":
                self.paused.discard(e["job"])
            case "BatchApplied" | "StepsReported" if e["job"] in self.jobs:
                if self.jobs[e["job"]]["batch"] != e["batch_size"]:
                    self.forbidden = None
                self.paused.discard(e["job"])
                self.jobs[e["job"]]["batch"] = e["batch_size"]
                wanted = self.advised.get(e["job"])
                if wanted is not None and wanted[0] == e["batch_size"]:
                    del self.advised[e["job"]]
            case "BatchFailed" if e["job"] in self.jobs:
                self.jobs[e["job"]]["sizes"].discard(e["batch_size"])
                self.advised.pop(e["job"], None)
            case "JobEnded":
                self.jobs.pop(e["job"], None)
                self.paused.discard(e["job"])
                self.advised.pop(e["job"], None)
            case "OverCurrentCounted" if self.jobs:
                self._over_current()
            case "GuardChanged":
                self.guard(e["guard"])
            case "KnobReadBack" if (e.get("requested_min_hz"), e.get("requested_max_hz")) == self.asked:
                self.asked_s = None

    def set_cap(self, cap: Mapping[str, Any] | None) -> None:
        self.cap_w = None if cap is None else cap["power_w"]
        self.window = None if cap is None else WindowMean(cap.get("window_s", 1.0))
        self.above_since_s = None

    def _sample(self, e: Mapping[str, Any]) -> None:
        if self.window is None or self.cap_w is None:
            return
        self.window.add(self.now_s, e.get("input_power_w"))
        mean = self.window.value
        governed = self.ours or any(job["policy"] != "observe" for job in self.jobs.values())
        lowest = self.asked == (self.lowest_hz, self.lowest_hz)
        if not self.clocks or mean is None or mean < self.cap_w or not governed or lowest:
            self.above_since_s = None
        elif self.above_since_s is None:
            self.above_since_s = self.now_s
        elif self.now_s - self.above_since_s > self.limits.above_s:
            self.complain(
                f"the window mean ({mean:.2f} W) has been at or above the cap ({self.cap_w:g} W) for "
                f"{self.now_s - self.above_since_s:.1f} s and no lower clock was asked for"
            )
            self.above_since_s = self.now_s

    def guard(self, settings: Mapping[str, Any]) -> None:
        self.avoid = settings.get("avoid_over_current", True)
        self.dead_s = settings.get("dead_time_s", 0.8)
        self.retry_s = min(self.limits.retry_s, settings.get("over_current_retry_s", 60.0))
        self.forbidden = self.rising_since_s = None

    def _over_current(self) -> None:
        governed = self.avoid and self.clocks and any(job["policy"] != "observe" for job in self.jobs.values())
        asked, lowest = self.asked, self.asked == (self.lowest_hz, self.lowest_hz)
        if not governed or lowest:
            self.rising_since_s = None
            return
        recent = self.now_s - self.moved_s < self.dead_s + self.limits.late_s
        hz = max(asked[1] if asked is not None else max(self.clocks), self.before_hz if recent else 0)
        if self.forbidden is None or hz <= self.forbidden[0] or self.now_s - self.forbidden[1] >= self.retry_s:
            self.forbidden = (hz, self.now_s)
        if self.rising_since_s is None or self.now_s - self.rose_s > 1.5:
            self.rising_since_s = self.now_s
        self.rose_s = self.now_s
        if self.now_s - self.rising_since_s > self.dead_s + self.limits.over_current_s:
            self.complain(
                f"over-current counters have risen for {self.now_s - self.rising_since_s:.1f} s and no lower clock "
                "was asked for"
            )
            self.rising_since_s = self.now_s

    def _forbidden(self, max_hz: int) -> None:
        if self.forbidden is None:
            return
        hz, since_s = self.forbidden
        if self.now_s - since_s >= self.retry_s:
            self.forbidden = None
        elif max_hz >= hz:
            self.complain(
                f"{max_hz} Hz was asked for although over-current counters rose at {hz} Hz "
                f"{self.now_s - since_s:.1f} s before"
            )

    def _waits(self) -> None:
        if self.asked_s is not None and self.now_s - self.asked_s > self.limits.read_back_s:
            self.complain(f"the bounds asked for at t={self.asked_s:.3f} s were not read back")
            self.asked_s = None
        for job, (batch, since) in list(self.advised.items()):
            if job in self.paused:
                self.advised[job] = batch, self.now_s  # a job that pauses follows nothing: it has its time afterwards
            elif self.now_s - since > self.limits.follow_s:
                self.complain(f"job {job} was advised batch {batch} at t={since:.3f} s and nothing came of it")
                del self.advised[job]

    # -- actions -----------------------------------------------------------------------------------------------
    def action(self, kind: str, a: Mapping[str, Any]) -> None:
        match kind:
            case "JobIdle":
                (self.paused.add if a["idle"] else self.paused.discard)(a["job"])
            case "SetGpuBounds":
                bounds = (a["min_hz"], a["max_hz"])
                if self.asked is not None and bounds[1] < self.asked[1]:
                    self.above_since_s = None
                    self.rising_since_s = None
                self._forbidden(bounds[1])
                self.before_hz = self.asked[1] if self.asked is not None else 0
                self.asked, self.asked_s, self.ours = bounds, self.now_s, True
                self.moved_s = self.now_s
                if self.clocks and not set(bounds) <= self.clocks:
                    self.complain(f"bounds {bounds} are not steps of the clock table")
            case "RestoreGpuBounds":
                self.asked, self.asked_s, self.ours, self.above_since_s = None, None, False, None
            case "AdviseBatch":
                job = self.jobs.get(a["job"])
                if job is None:
                    self.complain(f"advice to {a['job']}, which is not registered")
                    return
                if a["batch_size"] not in job["sizes"]:
                    self.complain(f"job {a['job']} was advised batch {a['batch_size']}, which it cannot use")
                self.advised.pop(a["job"], None)
                if a["batch_size"] != job["batch"]:
                    self.advised[a["job"]] = (a["batch_size"], self.now_s)

    def write(self, e: Mapping[str, Any]) -> None:
        folder, _, name = e["write"].rpartition("/")
        if not e.get("saved"):
            self.complain(f"{e['write']} was written while no original was saved")
        if "error" in e or name not in ("min_freq", "max_freq"):
            return
        knob = self.knobs.setdefault(folder, {})
        knob[name] = int(e["value"])
        if knob.get("min_freq", 0) > knob.get("max_freq", 1 << 62) > 0:
            self.complain(f"{folder}: min_freq {knob['min_freq']} was above max_freq {knob['max_freq']}")

    def end(self) -> None:
        if not self.jobs and self.ours:
            self.complain("every job ended and the GPU's bounds were not given back")


def violations(entries: Iterable[Mapping[str, Any]], limits: Limits | None = None) -> list[str]:
    """One line for each violated invariant of a recording, in order; empty when all hold.

    ``entries`` are the recording's lines as JSON objects, the header first. Raises KeyError for a line that lacks what
    its kind must have.
    """
    watch = _Watch(limits or Limits())
    for entry in entries:
        if "schema" in entry:
            watch.clocks = set(entry["board"]["gpu_frequencies_hz"])
            watch.lowest_hz = min(watch.clocks, default=0)
            watch.set_cap(entry.get("cap"))
            watch.policy = entry["settings"].get("policy", "joint")
            watch.guard(entry["settings"].get("guard", {}))
        elif entry.get("event") == "BoardFound":
            watch.clocks = set(entry["board"]["gpu_frequencies_hz"])
            watch.lowest_hz = min(watch.clocks, default=0)
        elif "event" in entry:
            watch.event(entry["event"], entry)
        elif "action" in entry:
            watch.action(entry["action"], entry)
        elif "write" in entry:
            watch.write(entry)
        elif "lost" in entry:
            watch.complain(f"{entry['lost']} lines of the recording were lost")
    watch.end()
    return watch.found
