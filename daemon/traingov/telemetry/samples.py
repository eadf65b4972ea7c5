"""From a reading of tegrastats to the governor's sample: which rails are input and compute power on this board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from traingov_policies.events import Sample

from .rails import Correction, RailRule, RailTable
from .tegrastats import Reading

_RULES_KEPT = 64
_TELL_EVERY_S = 10.0


class Sampler:
    """Turns readings into samples. The rail rule is chosen by what readings show, and again when that changes.

    ``on_rule`` is told a newly chosen rule and the rails that it does not know, at most every ten seconds.
    ``corrections`` (by rail) are applied before rails are added up; ``absent`` are those of them whose rail the present
    readings do not show.
    """

    def __init__(
        self,
        table: RailTable,
        board_name: str,
        on_rule: Callable[[RailRule, tuple[str, ...]], None],
        corrections: Mapping[str, Correction] | None = None,
    ) -> None:
        self._table = table
        self._board_name = board_name
        self._on_rule = on_rule
        self._rails: frozenset[str] | None = None
        self._rules: dict[frozenset[str], RailRule] = {}
        self._told_s = float("-inf")
        self.rule = table.rule_for((), board_name)
        self.corrections = dict(corrections or {})
        self.absent: tuple[str, ...] = ()

    def describe(self) -> str:
        """What makes up input and compute power, and what is corrected, in one line."""
        corrected = "; ".join(f"{name} {how}" for name, how in sorted(self.corrections.items()))
        return self.rule.describe() + (f"; corrected: {corrected}" if corrected else "")

    def correct(self, corrections: Mapping[str, Correction]) -> None:
        """Other corrections from now on."""
        self.corrections = dict(corrections)
        self._rails = None

    def corrected(self, reading: Reading) -> Reading:
        """The reading with its rails corrected; itself where there is nothing to correct."""
        found = {name: self.corrections[name](w) for name, w in reading.rails_w.items() if name in self.corrections}
        return replace(reading, rails_w={**reading.rails_w, **found}) if found else reading

    def sample(self, t_s: float, reading: Reading) -> Sample:
        """The sample of one reading, corrected before, that arrived at ``t_s``."""
        rails = reading.rails_w
        if self._rails is None or rails.keys() != self._rails:
            self._rails = frozenset(rails)
            known = self._rules.get(self._rails)
            if known is None:
                if len(self._rules) >= _RULES_KEPT:
                    self._rules.clear()
                known = self._rules[self._rails] = self._table.rule_for(rails, self._board_name)
                if t_s - self._told_s >= _TELL_EVERY_S:  # rails that come and go by the line must not fill the log
                    self._told_s = t_s
                    self._on_rule(known, known.unknown(rails))
            self.rule = known
            self.absent = tuple(sorted(name for name in self.corrections if name not in rails))
        temperatures = reading.temperatures_celsius
        power = self.rule.input_power_w(rails)
        return Sample(
            t_s,
            # A board that runs draws something: zero and below is a sensor's fault, not a reading.
            power if power is not None and power > 0 else None,
            self.rule.compute_power_w(rails),
            reading.gpu_frequency_hz,
            reading.gpu_utilization,
            max(temperatures.values()) if temperatures else None,
        )
