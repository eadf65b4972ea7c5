"""From a reading of tegrastats to the governor's sample: which rails are input and compute power on this board."""

from __future__ import annotations

from collections.abc import Callable

from traingov_policies.events import Sample

from .rails import RailRule, RailTable
from .tegrastats import Reading

_RULES_KEPT = 64
_TELL_EVERY_S = 10.0


class Sampler:
    """Turns readings into samples. The rail rule is chosen by what readings show, and again when that changes.

    ``on_rule`` is told a newly chosen rule and the rails that it does not know, at most every ten seconds.
    """

    def __init__(self, table: RailTable, board_name: str, on_rule: Callable[[RailRule, tuple[str, ...]], None]) -> None:
        self._table = table
        self._board_name = board_name
        self._on_rule = on_rule
        self._rails: frozenset[str] | None = None
        self._rules: dict[frozenset[str], RailRule] = {}
        self._told_s = float("-inf")
        self.rule = table.rule_for((), board_name)

    def sample(self, t_s: float, reading: Reading) -> Sample:
        """The sample of one reading that arrived at ``t_s``."""
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
