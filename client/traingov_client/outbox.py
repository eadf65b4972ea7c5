"""What waits to be sent. It merges instead of growing, and it loses no count."""

from typing import Any, Dict, List, Optional, Tuple

Item = Tuple[str, Dict[str, Any]]


class Outbox:
    """Notifications in order: steps, batch_applied, batch_failed, pause, resume.

    Windows of one batch size that follow each other are merged while they wait, so a slow daemon gets fewer reports,
    not less. Above ``bound`` items the windows of each batch size are merged into one, wherever they stood, and
    only the newest ``batch_applied`` stays, and the newest of ``pause`` and ``resume``, at the end.
    """

    def __init__(self, bound: int = 32) -> None:
        self._items: List[Item] = []
        self._bound = bound

    def __len__(self) -> int:
        return len(self._items)

    def steps(self, window: Dict[str, Any]) -> None:
        """Add a measured window (the fields of ``steps``)."""
        if self._items and self._items[-1][0] == "steps":
            last = self._items[-1][1]
            # Measured exactly and measured roughly are kept apart: a profile must not lose its precision.
            if last["batch_size"] == window["batch_size"] and last["synced"] == window["synced"]:
                self._items[-1] = ("steps", merged(last, window))
                return
        self._add("steps", window)

    def applied(self, batch_size: int, advice: Optional[int]) -> None:
        """The job now uses ``batch_size``."""
        self._add("batch_applied", {"batch_size": batch_size, "advice": advice})

    def failed(self, batch_size: int, reason: str) -> None:
        """The job cannot use ``batch_size``."""
        self._add("batch_failed", {"batch_size": batch_size, "reason": reason})

    def paused(self, reason: Optional[str]) -> None:
        """The job makes no steps for ``reason``; with None it does again."""
        self._add(*(("resume", {}) if reason is None else ("pause", {"reason": reason})))

    def take(self) -> List[Item]:
        """All that waits, taken out."""
        items, self._items = self._items, []
        return items

    def _add(self, method: str, params: Dict[str, Any]) -> None:
        self._items.append((method, params))
        if len(self._items) > self._bound:
            self._collapse()

    def _collapse(self) -> None:
        steps: Dict[int, Dict[str, Any]] = {}
        failed: Dict[int, Item] = {}
        applied: List[Item] = []
        pauses: List[Item] = []
        for item in self._items:
            method, params = item
            if method in ("pause", "resume"):
                pauses = [item]
                continue
            size = params["batch_size"]
            if method == "steps":
                steps[size] = merged(steps[size], params) if size in steps else params
            elif method == "batch_failed":
                failed[size] = item
            else:
                applied = [item]
        windows = sorted(steps.values(), key=lambda window: float(window["end_s"]))
        self._items = [("steps", window) for window in windows] + list(failed.values()) + applied + pauses
        # At most one window and one failure for each of the job's 64 batch sizes remain.
        self._bound = max(self._bound, 2 * len(self._items))


def merged(first: Dict[str, Any], second: Dict[str, Any]) -> Dict[str, Any]:
    """Two windows of one batch size as one: counts and seconds add up; the sequence length is weighted by samples."""
    lengths = [(w["seq_len_avg"], w["samples"]) for w in (first, second) if w.get("seq_len_avg") is not None]
    total = sum(samples for _, samples in lengths)
    return {
        "batch_size": first["batch_size"],
        "steps": first["steps"] + second["steps"],
        "samples": first["samples"] + second["samples"],
        "elapsed_s": first["elapsed_s"] + second["elapsed_s"],
        "end_s": max(first["end_s"], second["end_s"]),
        "synced": first["synced"] and second["synced"],
        "seq_len_avg": sum(length * samples for length, samples in lengths) / total if total else None,
    }
