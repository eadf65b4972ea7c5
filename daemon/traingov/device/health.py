"""How the board fares: thermal zones, cooling devices and over-current counters, read by a thread of its own.

Kernel: Documentation/ABI/testing/sysfs-class-thermal (temperatures and trip points in m°C). The counters are those of
the hwmon whose ``name`` is ``soctherm_oc`` (Orin, Thor): ``ocN_event_cnt`` counts from boot and is never cleared, so
differences count. hwmon numbers move between boots: the folder is found by its name. What cannot be read is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traingov_policies.events import OverCurrentCounted, Thermals, Zone

from .files import Files, list_or_empty, read_or_none

log = logging.getLogger("traingov.health")

COUNTERS_S = 0.2
THERMALS_S = 1.0
_FIND_AGAIN_S = 30.0
_HWMON = "/sys/class/hwmon"
_THERMAL = "/sys/class/thermal"
_COUNTER = re.compile(r"(oc\d+)_event_cnt\Z")
_TRIP = re.compile(r"trip_point_(\d+)_type\Z")
_PLAUSIBLE_CELSIUS = (-55.0, 150.0)  # a gated zone reads -256
_NO_THROTTLE = ("fan", "surface", "shutdown")  # cooling devices that hold no clock back

Event = Thermals | OverCurrentCounted


@dataclass(frozen=True)
class _Zone:
    path: str
    name: str
    trip_celsius: float | None


class HealthReader:
    """Reads one board through ``files``. Never raises for a file that is not there or cannot be read."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._counters: str | None = None
        self._names: tuple[str, ...] = ()
        self._counts: dict[str, int] = {}
        self._zones: tuple[_Zone, ...] = ()
        self._cooling: tuple[tuple[str, str], ...] = ()

    @property
    def has_counters(self) -> bool:
        """Whether the board has over-current counters."""
        return self._counters is not None

    def find(self) -> None:
        """Look for zones, cooling devices and counters. Drivers load late: worth repeating."""
        files = self._files
        self._counters = next(
            (
                f"{_HWMON}/{name}"
                for name in list_or_empty(files, _HWMON)
                if (read_or_none(files, f"{_HWMON}/{name}/name") or "").strip() == "soctherm_oc"
            ),
            None,
        )
        found = list_or_empty(files, self._counters) if self._counters is not None else ()
        self._names = tuple(match.group(1) for name in found if (match := _COUNTER.match(name)))
        names = list_or_empty(files, _THERMAL)
        self._zones = tuple(self._zone(f"{_THERMAL}/{n}", n) for n in names if n.startswith("thermal_zone"))
        self._cooling = tuple(
            (f"{_THERMAL}/{n}", kind)
            for n in names
            if n.startswith("cooling_device")
            and (kind := (read_or_none(files, f"{_THERMAL}/{n}/type") or "").strip())
            and not any(word in kind for word in _NO_THROTTLE)
        )

    def begin(self) -> None:
        """What was counted before now is nobody's."""
        self._counts = {}
        self.risen()

    def risen(self) -> tuple[tuple[str, int], ...]:
        """By how much each counter rose since the last look; a counter seen first, or one set back, did not rise."""
        risen = []
        for name in self._names:
            count = self._number(f"{self._counters}/{name}_event_cnt")
            if count is None:
                continue
            before = self._counts.get(name)
            self._counts[name] = count
            if before is not None and count > before:
                risen.append((name, count - before))
        return tuple(risen)

    def thermals(self, t_s: float) -> Thermals:
        """Temperatures and working cooling devices now."""
        zones = tuple(Zone(z.name, self._celsius(f"{z.path}/temp"), z.trip_celsius) for z in self._zones)
        states = ((kind, self._number(f"{path}/cur_state")) for path, kind in self._cooling)
        return Thermals(t_s, zones, tuple((kind, state) for kind, state in states if state))

    def _zone(self, path: str, folder: str) -> _Zone:
        trips = []
        for name in list_or_empty(self._files, path):
            match = _TRIP.match(name)
            if match and (read_or_none(self._files, f"{path}/{name}") or "").strip() == "passive":
                trip = self._celsius(f"{path}/trip_point_{match.group(1)}_temp")
                if trip is not None and trip > 0:
                    trips.append(trip)
        name = (read_or_none(self._files, f"{path}/type") or folder).strip()
        return _Zone(path, name, min(trips, default=None))

    def _celsius(self, path: str) -> float | None:
        number = self._number(path)
        if number is None or not _PLAUSIBLE_CELSIUS[0] <= number / 1000 <= _PLAUSIBLE_CELSIUS[1]:
            return None
        return number / 1000

    def _number(self, path: str) -> int | None:
        text = (read_or_none(self._files, path) or "").strip()
        with contextlib.suppress(ValueError):
            return int(text) if len(text) < 20 else None
        return None


class HealthWorker:
    """Reads at its own pace while jobs run, and hands events to ``feed`` on the loop; without jobs it sleeps."""

    def __init__(
        self, files: Files, feed: Callable[[Event], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader = HealthReader(files)
        self._feed = feed
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = threading.Condition()
        self._busy = self._closed = False
        self._thread: threading.Thread | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Events are handed to ``loop``."""
        self._loop = loop

    def busy(self, yes: bool) -> None:
        """Whether any job is registered. The thread is there from the first job on."""
        with self._wake:
            self._busy = yes
            if yes and self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="traingov-health", daemon=True)
                self._thread.start()
            self._wake.notify()

    def close(self) -> None:
        """End the thread; nobody waits for it."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def _run(self) -> None:
        while self._wait_for_jobs():
            try:
                for event in self._watch():
                    if self._loop is not None:
                        self._loop.call_soon_threadsafe(self._feed, event)
            except RuntimeError:
                return  # the loop closed
            except Exception:
                log.exception("health: this must not happen; please report it")
                time.sleep(THERMALS_S)

    def _wait_for_jobs(self) -> bool:
        with self._wake:
            while not self._busy and not self._closed:
                self._wake.wait()
            return not self._closed

    def _watch(self) -> Iterator[Event]:
        """The events of one stretch with jobs."""
        reader, clock = self._reader, self._clock
        reader.find()
        reader.begin()
        found_s, thermals_s = clock(), float("-inf")
        while True:
            now = clock()
            if now - found_s >= _FIND_AGAIN_S:
                reader.find()
                found_s = now
            risen = reader.risen()
            if risen:
                yield OverCurrentCounted(clock(), risen)
            if now - thermals_s >= THERMALS_S:
                thermals_s = now
                yield reader.thermals(now)
            with self._wake:
                if not self._busy or self._closed:
                    return
                self._wake.wait(COUNTERS_S if reader.has_counters else THERMALS_S)
