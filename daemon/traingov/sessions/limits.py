"""The bounds of the socket (DESIGN 4): size, rate, number and time, so that no client can hold the daemon up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on sessions; times in seconds, sizes in bytes.

    ``max_sessions`` connections at once, of which the last ``reserved_for_admins`` only administrators may take,
    so that a crowd of jobs never locks the administrator out. A connection says hello within ``hello_timeout_s``,
    completes a message within ``message_timeout_s`` and, as long as it has no running job, is closed after
    ``idle_timeout_s`` of silence. Messages pass a token bucket of ``rate_hz`` and ``burst`` tokens, where a
    message costs one token and one more for each KiB; above that the connection is read more slowly, and dropped when
    it has been held back for ``throttle_timeout_s``. One that leaves more than ``write_buffer_bytes`` unread, or
    reads nothing for ``write_timeout_s`` while answers wait, is dropped.

    Raises ValueError when the largest message would cost more tokens than the bucket holds.
    """

    max_sessions: int = 64
    reserved_for_admins: int = 8
    max_message_bytes: int = 64 * 1024
    max_batch: int = 64
    rate_hz: float = 100.0
    burst: float = 200.0
    write_buffer_bytes: int = 256 * 1024
    hello_timeout_s: float = 5.0
    message_timeout_s: float = 30.0
    idle_timeout_s: float = 60.0
    throttle_timeout_s: float = 30.0
    write_timeout_s: float = 10.0
    close_timeout_s: float = 1.0

    def __post_init__(self) -> None:
        if message_cost(self.max_message_bytes) > self.burst:
            raise ValueError(
                f"limits: a message of max_message_bytes {self.max_message_bytes} costs "
                f"{message_cost(self.max_message_bytes)} tokens, above burst {self.burst:g}: raise burst"
            )
        if not 0 <= self.reserved_for_admins < self.max_sessions:
            raise ValueError(
                f"limits: reserved_for_admins {self.reserved_for_admins} must lie between 0 and max_sessions "
                f"{self.max_sessions}"
            )
        if self.rate_hz <= 0:
            raise ValueError(f"limits: rate_hz must be positive, not {self.rate_hz:g}")


def message_cost(size_bytes: int) -> int:
    """Tokens that a message of ``size_bytes`` costs: one, and one for each whole KiB."""
    return 1 + size_bytes // 1024


class TokenBucket:
    """A token bucket: ``rate_hz`` tokens a second, at most ``burst`` of them. Times are CLOCK_MONOTONIC seconds."""

    def __init__(self, rate_hz: float, burst: float, now_s: float) -> None:
        self._rate_hz = rate_hz
        self._burst = burst
        self._tokens = burst
        self._at_s = now_s

    def take(self, cost: float, now_s: float) -> float:
        """Take ``cost`` tokens and return 0, or leave the bucket as it is and return the seconds to wait."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now_s - self._at_s) * self._rate_hz)
        self._at_s = now_s
        # A hair below the cost is enough: otherwise rounding could ask for a wait of nothing, for ever.
        if self._tokens >= cost - 1e-6:
            self._tokens -= cost
            return 0.0
        return (cost - self._tokens) / self._rate_hz
