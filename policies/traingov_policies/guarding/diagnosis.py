"""What is wrong when the clock, the step time or the power are not what they should be: evidence to verdict, pure.

The order is that of certainty. Over-current counters are events of their own. Heat throttles where a cooling device
works or a zone is at its trip, and something is slow. Only then is the clock itself in doubt: because telemetry shows
another one, or because time and power together fit another column of the table, whatever is read back. What is left
is a table that no longer fits the job.
"""

from __future__ import annotations

from dataclasses import dataclass

CLOCK_OFF = 0.05  # relative difference of a shown clock that is another clock
TIME_OFF = 0.08  # of a step time, or
POWER_OFF = 0.06  # of power, that is more than noise and a warm board
NEAR_TRIP_CELSIUS = 2.0

VERDICTS = ("over-current", "thermal-throttling", "clock-not-following", "table-off")


@dataclass(frozen=True)
class Evidence:
    """All that is known now; None where it is not.

    ``set_hz``: the pin as read back. ``shown_hz``: the clock in telemetry. ``time_ratio`` and ``power_ratio``: step
    time and power over the table's at this point. ``fits_hz``: the clock whose column of the table fits both best,
    where it fits clearly better than the set one. ``over_current``: counters rose lately. ``cooling``: a cooling
    device other than a fan is at work. ``to_trip_celsius``: kelvins to the nearest passive trip.
    """

    set_hz: int | None = None
    shown_hz: int | None = None
    time_ratio: float | None = None
    power_ratio: float | None = None
    fits_hz: int | None = None
    over_current: bool = False
    cooling: str | None = None
    to_trip_celsius: float | None = None

    @property
    def shown_off(self) -> bool:
        """Whether telemetry shows another clock than was set."""
        return bool(self.set_hz and self.shown_hz) and abs((self.shown_hz or 0) / (self.set_hz or 1) - 1) > CLOCK_OFF

    @property
    def slow(self) -> bool:
        """Whether the GPU does less than it should: a lower clock is shown, or steps take longer."""
        low = self.shown_off and (self.shown_hz or 0) < (self.set_hz or 0)
        return low or (self.time_ratio is not None and self.time_ratio > 1 + TIME_OFF)

    @property
    def near_trip(self) -> bool:
        """Whether a zone is at its passive trip."""
        return self.to_trip_celsius is not None and self.to_trip_celsius <= NEAR_TRIP_CELSIUS

    @property
    def differs(self) -> bool:
        """Whether time or power differ from the table by more than noise."""
        time, power = self.time_ratio, self.power_ratio
        return (time is not None and abs(time - 1) > TIME_OFF) or (power is not None and abs(power - 1) > POWER_OFF)


def diagnose(e: Evidence) -> str | None:
    """The verdict, one of VERDICTS, or None when nothing is wrong."""
    if e.over_current:
        return "over-current"
    unseen = e.shown_hz is None and e.time_ratio is None
    if (e.slow and (e.cooling is not None or e.near_trip)) or (unseen and e.cooling is not None):
        return "thermal-throttling"
    if e.shown_off or (e.differs and e.fits_hz is not None and e.fits_hz != e.set_hz):
        return "clock-not-following"
    if e.differs:
        return "table-off"
    return None


def explain(verdict: str, e: Evidence) -> str:
    """The verdict and its evidence in one line."""
    clock = "the GPU's clock" if e.set_hz is None else f"{e.set_hz / 1e6:.0f} MHz"
    live = _live(e)
    if verdict == "over-current":
        return "the board's over-current counters rise: it throttles itself; weak supply or too high a clock"
    if verdict == "thermal-throttling":
        why = f"cooling device {e.cooling} is at work" if e.cooling is not None else "a zone is at its passive trip"
        seen = f"telemetry shows {(e.shown_hz or 0) / 1e6:.0f} MHz" if e.shown_off else live
        return f"{clock} is set, but {seen}: {why}"
    if verdict == "clock-not-following":
        if e.shown_off:
            return f"{clock} is set and reads back, but telemetry shows {(e.shown_hz or 0) / 1e6:.0f} MHz"
        fits = f"; both fit {e.fits_hz / 1e6:.0f} MHz" if e.fits_hz is not None else ""
        return f"{clock} is set and reads back, but {live}{fits}"
    return f"the clock is right, but {live}: it no longer fits"


def _live(e: Evidence) -> str:
    parts = []
    if e.time_ratio is not None:
        parts.append(f"steps take {_percent(e.time_ratio)}")
    if e.power_ratio is not None:
        parts.append(f"power is {_percent(e.power_ratio)}")
    return (" and ".join(parts) + " than in the table") if parts else "nothing else is known"


def _percent(ratio: float) -> str:
    return f"{abs(100 * (ratio - 1)):.0f} % {'more' if ratio >= 1 else 'less'}"


@dataclass(frozen=True)
class Column:
    """What the table holds at one clock for the present batch size."""

    hz: int
    time_s: float
    power_w: float


def fitting(columns: tuple[Column, ...], set_hz: int, time_s: float, power_w: float) -> int | None:
    """The clock whose time and power fit best; None unless it fits within half of how the set one misses.

    The misfit is the sum of squared relative differences of time and power, in units of their tolerances.
    """
    own: float | None = None
    best: tuple[float, int] | None = None
    for column in columns:
        misfit = ((time_s / column.time_s - 1) / TIME_OFF) ** 2 + ((power_w / column.power_w - 1) / POWER_OFF) ** 2
        if column.hz == set_hz:
            own = misfit
        if best is None or misfit < best[0]:
            best = (misfit, column.hz)
    if own is None or best is None or best[1] == set_hz:
        return None
    return best[1] if best[0] < 1 and best[0] < 0.25 * own else None
