"""A recording of a twin's run in the service's own format: what ``traingov replay`` accepts (DESIGN 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from traingov_policies.actions import Action
from traingov_policies.codec import SCHEMA, encode, encode_action, encode_event
from traingov_policies.events import Event
from traingov_policies.settings import Settings
from traingov_policies.values import Board, Cap


class Recording:
    """Header, events, actions and knob writes, in the order in which they happened, as plain values."""

    def __init__(self, board: Board, settings: Settings, cap: Cap | None) -> None:
        self.entries: list[dict[str, Any]] = [
            {"schema": SCHEMA, "board": encode(board), "settings": encode(settings), "cap": encode(cap)}
        ]

    def event(self, event: Event) -> None:
        """Record an event."""
        self.entries.append(encode_event(event))

    def action(self, action: Action) -> None:
        """Record an action."""
        self.entries.append(encode_action(action))

    def write(self, path: str, value: int, t_s: float, error: str | None = None) -> None:
        """Record a write to a knob; the originals were read before the first one."""
        entry: dict[str, Any] = {"write": path, "value": str(value), "saved": True, "t_s": t_s}
        self.entries.append(entry if error is None else {**entry, "error": error})

    def lines(self) -> list[str]:
        """One JSON object a line, newline included."""
        return [json.dumps(entry, separators=(",", ":")) + "\n" for entry in self.entries]

    def save(self, path: Path) -> None:
        """Write the file. Raises OSError."""
        path.write_text("".join(self.lines()), encoding="utf-8")
