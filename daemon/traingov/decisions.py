"""The decisions that `explain` tells of: the newest ones, small enough to be one answer on the socket."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from traingov_policies.actions import Decided

_MOST = 200
_MOST_DETAILS = 8  # of some kilobytes each


class Decisions:
    """Plain values, oldest first. Only the newest choice of a job keeps its detail, and only the last few jobs do."""

    def __init__(self) -> None:
        self._held: deque[dict[str, Any]] = deque(maxlen=_MOST)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._held)

    def add(self, t_s: float, decided: Decided, at: str) -> None:
        """Remember a decision taken at ``t_s``; ``at`` is the same as people tell time, UTC."""
        said: dict[str, Any] = {
            "t_s": t_s,
            "at": at,
            "job": decided.job,
            "kind": decided.kind,
            "text": decided.text,
            "point": None if decided.point is None else vars(decided.point),
        }
        if decided.detail:
            explained = [d for d in self._held if "detail" in d]
            for number, older in enumerate(explained):
                if older["job"] == decided.job or number <= len(explained) - _MOST_DETAILS:
                    del older["detail"]
            said["detail"] = decided.detail
        self._held.append(said)
