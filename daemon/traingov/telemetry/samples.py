"""From a reading of tegrastats to the governor's sample: which rails are input and compute power on this board."""

from __future__ import annotations

from collections.abc import Callable

from traingov_policies.events import Sample

from .rails import RailRule, RailTable
from .tegrastats import Reading


class Sampler:
    """Turns readings into samples. The rail rule is chosen by what readings show, and again when that changes.

    ``on_rule`` is told each rule chosen, and the rails that it does not know.
    """

    def __init__(self, table: RailTable, board_name: str, on_rule: Callable[[RailRule, tuple[str, ...]], None]) -> None:
        self._table = table
        self._board_name = board_name
        self._on_rule = on_rule
        self._rails: frozenset[str] | None = None
        self.rule = table.rule_for((), board_name)

    def sample(self, t_s: float, reading: Reading) -> Sample:
        """The sample of one reading that arrived at ``t_s``."""
        rails = reading.rails_w
        if self._rails is None or rails.keys() != self._rails:
            self._rails = frozenset(rails)
            self.rule = self._table.rule_for(rails, self._board_name)
            self._on_rule(self.rule, self.rule.unknown(rails))
        temperatures = reading.temperatures_celsius
        return Sample(
            t_s,
            self.rule.input_power_w(rails),
            self.rule.compute_power_w(rails),
            reading.gpu_frequency_hz,
            reading.gpu_utilization,
            max(temperatures.values()) if temperatures else None,
        )
