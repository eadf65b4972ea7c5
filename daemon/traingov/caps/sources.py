"""All sources of a cap on the loop: gathers what each asks for, and tells when what is in force changes.

Wall-clock time only says which entry of the schedule holds now, and is looked at anew each second; every wait is
monotonic. Files and batteries are read in threads of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traingov_policies.cap_file import FileWatch
from traingov_policies.caps import Battery, BatteryRules, Claim, InForce, battery_of, in_force
from traingov_policies.values import Cap

from ..device.files import SystemFiles, boot_id
from ..sessions.handler import Refused
from .battery import read_batteries
from .capfile import look_at
from .kept import read_claims, write_claims
from .looker import Looker
from .options import CapOptions

_FILE_S = 0.4  # two looks within a second
_CLOCK_S = 1.0
_MOST_NAMED = 16
_COMMAND = "command"
_CONFIGURATION = "configuration"

Keep = Callable[[str, Callable[[], None]], None]


class CapSources:
    """``changed(cap, source)`` is called when another cap comes into force, ``condition(name, text or None)`` when
    something is wrong with a source or no longer is. ``second_of_day`` is local wall-clock time.
    """

    def __init__(
        self, fixed: Cap | None, options: CapOptions, root: str, kept: Path, *, keep: Keep,
        changed: Callable[[Cap | None, str], None], condition: Callable[[str, str | None], None],
        clock: Callable[[], float] = time.monotonic, second_of_day: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        self._files = SystemFiles(root)
        self._kept, self._keep, self._changed, self._condition = kept, keep, changed, condition
        self._clock, self._second_of_day = clock, second_of_day or _second_of_day
        self._boot = boot_id(SystemFiles("/"))
        self._named = read_claims(kept, self._boot, clock())
        self._lookers = Looker("traingov-cap-file"), Looker("traingov-battery")
        self._battery: Battery | None = None
        self._battery_problem: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._since: dict[Claim, str] = {}
        self._fixed = fixed
        self._watch: FileWatch | None = None
        self._rules = BatteryRules()
        self._next_battery_s = self._next_file_s = 0.0
        self._take(options)
        self.now = InForce(fixed, _CONFIGURATION)  # what the governor begins with

    # -- life ----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to look. A cap that was set by command before the last stop is in force again."""
        self._turn()

    def configured(self, fixed: Cap | None, options: CapOptions) -> None:
        """Take over what a reload changed; what was set by command stays."""
        self._fixed = fixed
        self._take(options)
        self._turn()

    # -- commands ------------------------------------------------------------------------------------------------
    def set(self, cap: Cap, uid: int, source: str | None, ttl_s: float | None, override: bool) -> None:
        """``uid`` sets a cap, in the name of ``source`` where one is given. Raises Refused for too many names."""
        name = _COMMAND if source is None else f"{_COMMAND} {source}"
        now_s = self._clock()
        self._drop_lapsed(now_s)
        if name not in self._named and len(self._named) >= _MOST_NAMED:
            raise Refused(text=f"{_MOST_NAMED} sources have set a cap already: clear one first (traingov cap get)")
        expires_s = None if ttl_s is None else now_s + ttl_s
        self._named[name] = Claim(name, cap, uid, _wall(), override, ttl_s, expires_s)
        self._write()

    def clear(self, source: str | None) -> None:
        """Take back what ``source`` set by command; with None, everything that was set by command."""
        if source is None:
            self._named.clear()
        else:
            self._named.pop(f"{_COMMAND} {source}", None)
        self._write()

    def to_json(self) -> dict[str, Any]:
        """What is in force, and what every source asks for."""
        now_s = self._clock()
        claims = self._claims(now_s)
        named = next((claim for claim in claims if claim.source == self.now.source), None)
        values: dict[str, Any] = {"power_w": None} if self.now.cap is None else vars(self.now.cap)
        battery = self._battery if self._rules.rules else None
        return {
            **values,
            "source": self.now.source,
            "uid": None if named is None else named.uid,
            "set_at": None if named is None else self._set_at(named),
            "sources": [self._claim_json(claim, claim is named, now_s) for claim in claims],
            "battery": None if battery is None else vars(battery),
            "problems": {name: text for name, text in self._problems(now_s).items() if text is not None},
        }

    # -- inside --------------------------------------------------------------------------------------------------
    def _take(self, options: CapOptions) -> None:
        self._options = options
        if options.file is None:
            self._watch = None
        elif self._watch is None or options.file != self._watch.file:
            self._watch = FileWatch(options.file, self._clock())
            self._next_file_s = 0.0
        if (options.rules, options.hysteresis_percent) != (self._rules.rules, self._rules.hysteresis_percent):
            self._rules = BatteryRules(options.rules, options.hysteresis_percent)
            self._next_battery_s = 0.0

    def _turn(self) -> None:
        """Look at what is due, and come again while anything may change by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_s = self._clock()
        if self._watch is not None and now_s >= self._next_file_s:
            path = self._watch.file.path
            self._next_file_s = now_s + _FILE_S
            self._lookers[0].ask(lambda: (path, look_at(path)), self._looked)
        if self._rules.rules and now_s >= self._next_battery_s:
            self._next_battery_s = now_s + self._options.battery_interval_s
            self._lookers[1].ask(lambda: battery_of(read_batteries(self._files)), self._battery_read)
        self._update()
        lapses = any(claim.expires_s is not None for claim in self._named.values())
        if self._watch is not None or self._options.schedule.entries or self._rules.rules or lapses:
            wait_s = _CLOCK_S if self._watch is None else _FILE_S
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._turn)

    def _looked(self, result: tuple[str, Any]) -> None:
        path, look = result
        if self._watch is not None and self._watch.file.path == path:
            self._watch.see(self._clock(), look)
            self._update()

    def _battery_read(self, battery: Battery | None) -> None:
        self._battery = battery
        self._rules.see(battery)
        self._battery_problem = self._rules.missing(battery)
        self._update()

    def _claims(self, now_s: float) -> list[Claim]:
        claims = [] if self._fixed is None else [Claim(_CONFIGURATION, self._fixed)]
        claims += [claim for claim in self._named.values() if not claim.lapsed(now_s)]
        scheduled = self._options.schedule.at(self._second_of_day()) if self._options.schedule.entries else None
        filed = None if self._watch is None else self._watch.claim(now_s)
        return [*claims, *(c for c in (scheduled, filed) if c is not None), *self._rules.claims()]

    def _update(self) -> None:
        now_s = self._clock()
        self._drop_lapsed(now_s)
        claims = self._claims(now_s)
        self._since = {claim: self._since.get(claim) or _wall() for claim in claims if claim.uid is None}
        for name, text in self._problems(now_s).items():
            self._condition(name, text)
        new, old = in_force(claims, now_s), self.now
        self.now = new
        if new.cap != old.cap:
            self._changed(new.cap, self._who(new, claims))

    def _who(self, now: InForce, claims: list[Claim]) -> str:
        """The source as the log and a recording name it."""
        uid = next((claim.uid for claim in claims if claim.source == now.source), None)
        return now.source if uid is None else f"{now.source}, uid {uid}"

    def _problems(self, now_s: float) -> dict[str, str | None]:
        return {
            "cap-file": None if self._watch is None else self._watch.problem(now_s),
            "cap-battery": self._battery_problem if self._rules.rules else None,
        }

    def _claim_json(self, claim: Claim, named: bool, now_s: float) -> dict[str, Any]:
        return {
            "source": claim.source,
            **vars(claim.cap),
            "uid": claim.uid,
            "set_at": self._set_at(claim),
            "override": claim.override,
            "expires_in_s": None if claim.expires_s is None else round(max(0.0, claim.expires_s - now_s), 1),
            "in_force": named,
        }

    def _set_at(self, claim: Claim) -> str | None:
        return claim.set_at or self._since.get(claim)

    def _drop_lapsed(self, now_s: float) -> None:
        lapsed = [name for name, claim in self._named.items() if claim.lapsed(now_s)]
        if lapsed:
            for name in lapsed:
                del self._named[name]
            self._persist()

    def _write(self) -> None:
        self._persist()
        self._turn()

    def _persist(self) -> None:
        claims = dict(self._named)
        self._keep("the cap", lambda: write_claims(self._kept, self._boot, claims))


def _wall() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _second_of_day() -> int:
    time.tzset()  # the time zone may have been changed since
    now = time.localtime()
    return now.tm_hour * 3600 + now.tm_min * 60 + now.tm_sec
