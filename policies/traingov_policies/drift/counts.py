"""What drift has cost and led to, for metrics and `traingov status`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

RESULTS = ("confirmed", "rescaled", "partial", "failed", "given-up")


@dataclass
class DriftCounts:
    """``alarms`` by what raised them ("point": at the present one; "probe": at another), ``revalidations`` by result
    (RESULTS), full ``reprofiles``, ``probes`` and the seconds ``probe_s`` spent at other points for them. Until
    ``quiet_until_s`` no doubt is raised: the last one came to nothing.
    """

    alarms: dict[str, int] = field(default_factory=lambda: {"point": 0, "probe": 0})
    revalidations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    reprofiles: int = 0
    probes: int = 0
    probe_s: float = 0.0
    reprofiled_s: float | None = None
    quiet_until_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {k: v for k, v in asdict(self).items() if k not in ("reprofiled_s", "quiet_until_s")}
