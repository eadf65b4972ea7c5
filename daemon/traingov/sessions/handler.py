"""What the governor loop offers to sessions, and what a session offers to the loop.

All calls are synchronous, on the loop's thread, and must not block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from traingov_policies.values import Features, Objective, PolicyName

from .jsonrpc import REFUSED
from .peer import Peer


class Refused(Exception):  # noqa: N818  an answer, not a fault
    """The handler does not do what was asked. ``text`` is one line: what is wrong and what to do.

    ``code`` is a JSON-RPC error code; REFUSED (-32005) fits where nothing else does.
    """

    def __init__(self, code: int = REFUSED, text: str = "refused") -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Signature:
    """What makes two workloads of one name the same (DESIGN 6); None where the job did not say."""

    architecture: str | None = None
    input_shape: str | None = None
    precision: str | None = None
    optimizer: str | None = None


@dataclass(frozen=True)
class RegisterRequest:
    """A training process asks to be governed. ``batch_sizes`` ascend; ``batch_size`` is one of them.

    ``pid`` is the process that trains, None where the kernel shows none (a process of another PID namespace).
    ``samples_done`` of ``samples_total`` samples are done (None: unknown); ``resume`` asks to go on with what
    the daemon remembers of this workload.
    """

    workload: str
    batch_sizes: tuple[int, ...]
    batch_size: int
    pid: int | None = None
    policy: PolicyName | None = None
    objective: Objective | None = None
    features: Features = field(default_factory=Features)
    learning_rate_rule: str | None = None
    signature: Signature = field(default_factory=Signature)
    samples_done: int = 0
    samples_total: int | None = None
    resume: bool = False


@dataclass(frozen=True)
class RegisterReply:
    """The job's name, unique within a run of the daemon, and what it should start with.

    ``phase`` is "profile", "train" or "hold"; ``advice`` numbers the advice, None where there is none yet.
    """

    job: str
    batch_size: int
    phase: str = "train"
    advice: int | None = None


@dataclass(frozen=True)
class StepsReport:
    """``steps`` steps, ``samples`` samples, at ``batch_size``, in ``elapsed_s`` seconds up to ``end_s``.

    ``end_s`` is CLOCK_MONOTONIC, never in the future. ``synced``: the device was synchronised at both edges.
    """

    batch_size: int
    steps: int
    samples: int
    elapsed_s: float
    end_s: float
    synced: bool = False
    seq_len_avg: float | None = None


class JobSession(Protocol):
    """The connection of one registered job, as the handler sees it."""

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""

    @property
    def client(self) -> str:
        """What the client called itself, such as "traingov-client/0.1.0"."""

    @property
    def pid(self) -> int | None:
        """The process that trains; None where the kernel shows none."""

    @property
    def job(self) -> str | None:
        """The name that the handler gave in RegisterReply; None during ``Handler.register``."""

    def advise(self, advice: int, batch_size: int, phase: str, reason: str) -> None:
        """Send advice. Does nothing once the connection is gone. Never blocks, never raises for the peer's sake."""


class Handler(Protocol):
    """What the governor loop implements.

    ``ended`` is called exactly once for each session whose ``register`` returned, and nothing after it.
    An exception other than Refused is logged and answered with -32603; the connection stays.
    """

    def register(self, session: JobSession, request: RegisterRequest) -> RegisterReply:
        """Take a job in. Raises Refused. Must not call ``session.advise`` before it returned."""

    def steps(self, session: JobSession, report: StepsReport) -> None:
        """A job made progress."""

    def batch_applied(self, session: JobSession, batch_size: int, advice: int | None) -> None:
        """The job now trains with ``batch_size``, following ``advice`` if any."""

    def batch_failed(self, session: JobSession, batch_size: int, reason: str) -> None:
        """The job cannot use ``batch_size``."""

    def paused(self, session: JobSession, reason: str | None) -> None:
        """The job makes no steps for a while, for ``reason``; None: it does again."""

    def ended(self, session: JobSession, reason: str) -> None:
        """The job is over: "end" (it said so), "disconnected" or "exited"."""

    def query(self, method: str, params: dict[str, Any]) -> object:
        """Answer a method that only reads: status, jobs, explain, cap.get, policy.get, profile.get.

        JSON values. Raises Refused.
        """

    def command(self, method: str, params: dict[str, Any], who: Peer) -> object:
        """Carry out a method of administrators: cap.set, cap.clear, policy.set, profile.start, profile.stop.

        JSON values. Raises Refused.
        """
