"""What a look gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OK, ATTENTION, PROBLEM, UNSEEN = "ok", "attention", "problem", "not seen"


@dataclass(frozen=True)
class Finding:
    """One fact. ``state`` is OK, ATTENTION (works, with a limit), PROBLEM (does not work) or UNSEEN (could not be
    looked at, ``text`` says why). ``advice`` says what to do; empty where there is nothing to do."""

    check: str
    state: str
    text: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(self.__dict__)
