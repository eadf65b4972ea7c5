"""Which cap holds, of all that somebody asks for: the rule, and what schedule and battery ask for. Pure.

The rule: every source that asks for something is kept. The lowest power of all is in force, with the shortest window
and the lowest burst limit of all: a mean below P over a short window is below P over a longer one too. A claim that
says ``override`` holds alone, whatever the others say; of several, the same rule among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .values import Cap

DAY_S = 86_400


@dataclass(frozen=True)
class Claim:
    """A source asks for ``cap``. ``source`` names it for people, such as "schedule 22:00" or "battery below 30 %".

    ``uid`` is the user behind a command, None for any other source. ``set_at`` is wall-clock time, for people only.
    ``expires_s``: CLOCK_MONOTONIC time at which the claim lapses, ``ttl_s`` after it was set.
    """

    source: str
    cap: Cap
    uid: int | None = None
    set_at: str | None = None
    override: bool = False
    ttl_s: float | None = None
    expires_s: float | None = None

    def lapsed(self, now_s: float) -> bool:
        """Whether its time is over."""
        return self.expires_s is not None and now_s >= self.expires_s


@dataclass(frozen=True)
class InForce:
    """The cap that holds (None: none) and the source of its power."""

    cap: Cap | None
    source: str


NOTHING = InForce(None, "no source")


def in_force(claims: Iterable[Claim], now_s: float) -> InForce:
    """The rule above, among the claims that have not lapsed; of equal powers the earlier claim is named."""
    alive = [claim for claim in claims if not claim.lapsed(now_s)]
    alone = [claim for claim in alive if claim.override]
    counted = alone or alive
    if not counted:
        return NOTHING
    lowest = min(counted, key=lambda claim: claim.cap.power_w)
    bursts = [claim.cap.burst_w for claim in counted if claim.cap.burst_w is not None]
    window_s = min(claim.cap.window_s for claim in counted)
    return InForce(Cap(lowest.cap.power_w, window_s, min(bursts, default=None)), lowest.source)


# -- a daily schedule ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """What holds from which time of day on, local wall-clock time; ``entries`` are (label, second of day, cap).

    A cap of None says that from then on the schedule asks for nothing. What holds is a function of what the clock
    shows and of nothing else: after a jump, in the hour that a summer time repeats and in the one it leaves out.
    """

    entries: tuple[tuple[str, int, Cap | None], ...] = ()

    @classmethod
    def of(cls, entries: Mapping[str, Cap | None]) -> Schedule:
        """From times "HH:MM". Raises ValueError naming one that is none, or that stands there twice."""
        found: dict[int, tuple[str, int, Cap | None]] = {}
        for label, cap in entries.items():
            second = second_of_day(label)
            if second in found:
                raise ValueError(f"the time {label} stands there twice (also as {found[second][0]})")
            found[second] = (label, second, cap)
        return cls(tuple(found[second] for second in sorted(found)))

    def at(self, second: int) -> Claim | None:
        """What the schedule asks for at this second of the local day; before the first entry the last one holds on."""
        if not self.entries:
            return None
        begun = [entry for entry in self.entries if entry[1] <= second]
        label, _, cap = (begun or self.entries)[-1]
        return None if cap is None else Claim(f"schedule {label}", cap)


def second_of_day(label: str) -> int:
    """The second of the day of a time "HH:MM". Raises ValueError."""
    hours, colon, minutes = label.partition(":")
    plain = hours.isascii() and minutes.isascii() and hours.isdigit() and minutes.isdigit()
    if not (colon and plain and len(hours) <= 2 and len(minutes) == 2 and int(hours) < 24 and int(minutes) < 60):
        raise ValueError(f'"{label}" is no time of day; write it as "22:00", with the quotation marks')
    return int(hours) * 3600 + int(minutes) * 60


# -- the battery -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Battery:
    """A battery as the kernel shows it; None where it does not say. ``power_w`` is what flows in or out, unsigned."""

    name: str
    percent: float | None = None
    status: str | None = None
    power_w: float | None = None


@dataclass(frozen=True)
class BatteryRule:
    """``cap`` holds ``when`` the battery is "discharging", "charging", or "always", and below a charge if one is named.

    "charging" is everything that is known not to be discharging: also full, or not charging.
    """

    cap: Cap
    when: str = "always"
    below_percent: float | None = None

    def __str__(self) -> str:
        state = "" if self.when == "always" else f" {self.when}"
        charge = "" if self.below_percent is None else f" below {self.below_percent:g} %"
        return f"battery{state}{charge}"


def battery_of(batteries: Sequence[Battery]) -> Battery | None:
    """One battery for all: the lowest charge, discharging where any is, the powers added. None where there is none."""
    if not batteries:
        return None
    percents = [b.percent for b in batteries if b.percent is not None]
    statuses = [b.status for b in batteries if b.status is not None]
    powers = [b.power_w for b in batteries if b.power_w is not None]
    discharging = next((s for s in statuses if _is(s, "discharging")), None)
    return Battery(
        ", ".join(b.name for b in batteries),
        min(percents, default=None),
        discharging or (statuses[0] if statuses else None),
        sum(powers) if powers else None,
    )


@dataclass
class BatteryRules:
    """Which rules hold, with hysteresis: one that holds is left at its charge plus ``hysteresis_percent`` only.

    A reading that is missing changes nothing: a rule that held holds on, one that did not still does not.
    """

    rules: tuple[BatteryRule, ...] = ()
    hysteresis_percent: float = 3.0
    holding: set[int] = field(default_factory=set)

    def see(self, battery: Battery | None) -> None:
        """Take a reading."""
        if battery is None:
            return
        for number, rule in enumerate(self.rules):
            held = number in self.holding
            state = _state_holds(rule.when, battery.status)
            charge = _charge_holds(rule.below_percent, battery.percent, self.hysteresis_percent if held else 0.0)
            if state is False or charge is False:
                self.holding.discard(number)
            elif state and charge:
                self.holding.add(number)

    def claims(self) -> list[Claim]:
        """What the rules that hold ask for."""
        return [Claim(str(self.rules[number]), self.rules[number].cap) for number in sorted(self.holding)]

    def missing(self, battery: Battery | None) -> str | None:
        """What the rules need and the board does not show, in words; None when nothing is missing."""
        if not self.rules:
            return None
        if battery is None:
            return "no battery is shown (a power_supply of type Battery): its rules are left as they were"
        if battery.percent is None and any(rule.below_percent is not None for rule in self.rules):
            return f"{battery.name} does not show its charge: rules about it are left as they were"
        if _state_holds("discharging", battery.status) is None and any(rule.when != "always" for rule in self.rules):
            return f"{battery.name} does not show whether it is discharging: rules about it are left as they were"
        return None


def _is(status: str, word: str) -> bool:
    return status.strip().lower() == word


def _state_holds(when: str, status: str | None) -> bool | None:
    if when == "always":
        return True
    if status is None or _is(status, "unknown"):
        return None
    return _is(status, "discharging") == (when == "discharging")


def _charge_holds(below: float | None, percent: float | None, hysteresis: float) -> bool | None:
    if below is None:
        return True
    return None if percent is None else percent < below + hysteresis
