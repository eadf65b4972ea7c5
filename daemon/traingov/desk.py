"""The desk where sessions are answered: jobs register and report, people ask and set. Implements sessions.handler."""

from __future__ import annotations

import logging
import time
from typing import Any

from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.values import Cap, Objective, PolicyName

from .caps.sources import CapSources
from .config import Config
from .data import data_dir
from .journal_log import JOB_ENDED, JOB_REGISTERED, fields
from .loop import Loop
from .progress import job_progress
from .sessions.handler import JobSession, Refused, RegisterReply, RegisterRequest, StepsReport
from .sessions.jsonrpc import INVALID_PARAMS
from .sessions.messages import cap_in
from .sessions.peer import Peer
from .store import load_relations, signature_of
from .sweeps import request

log = logging.getLogger("traingov.desk")

_LATE_S = 5.0
_JOBS_TOLD = 30


class Desk:
    """Implements sessions.handler.Handler on top of the loop. Nothing here waits."""

    def __init__(self, config: Config, loop: Loop) -> None:
        self._loop = loop
        self._sessions: dict[str, JobSession] = {}
        self._registering: list[act.AdviseBatch] | None = None
        self.caps = CapSources(
            config.cap, config.cap_sources, config.root, config.state_dir / "cap.json",
            keep=loop.keep, changed=self._cap_changed, condition=loop.tell, clock=loop.clock,
        )  # fmt: skip
        self._policy = PolicyName(config.values["policy"])
        self._objective = Objective(config.values["objective"])
        self._relations = load_relations((config.state_dir / "relations", data_dir() / "relations"))

    def begin(self) -> None:
        """A cap that was set by command before the last stop is in force again."""
        self.caps.start()

    def advise(self, advice: act.AdviseBatch) -> None:
        """Pass the governor's advice on; while a job registers, its first advice becomes the answer."""
        if self._registering is not None:
            self._registering.append(advice)
        elif (session := self._sessions.get(advice.job)) is not None:
            session.advise(advice.advice, advice.batch_size, advice.phase, advice.reason)

    # -- jobs ----------------------------------------------------------------------------------------------------
    def register(self, session: JobSession, request: RegisterRequest) -> RegisterReply:
        """Take a job in, and answer with the first advice."""
        loop = self._loop
        if not self._sessions:
            loop.look_at_board()
        job = self._name(request.workload)
        signature = signature_of(request.workload, vars(request.signature))
        loop.signatures[job] = signature
        self._sessions[job] = session
        self._registering = []
        try:
            self._loop.feed(
                ev.JobRegistered(
                    self._loop.clock(),
                    job,
                    request.workload,
                    request.batch_sizes,
                    request.batch_size,
                    request.policy,
                    request.objective,
                    request.features,
                    loop.luts.get(loop.board, signature),
                    self._relations.get(request.workload),
                    request.samples_done,
                    loop.luts.prior(loop.board, signature, request.workload),
                    request.samples_total,
                    loop.curves.of(loop.board, signature),
                    loop.curves.others(loop.board, signature),
                )
            )
            advice = [a for a in self._registering if a.job == job]
            others = [a for a in self._registering if a.job != job]
        except BaseException:
            self._sessions.pop(job, None)  # `ended` is not called for a registration that failed
            loop.signatures.pop(job, None)
            raise
        finally:
            self._registering = None
        for other in others:
            self.advise(other)
        loop.busy(True)
        log.info(
            "job %s registered by %s (pid %s)", job, session.client, session.pid, extra=fields(JOB_REGISTERED, job=job)
        )
        if not advice:
            return RegisterReply(job, request.batch_size, "hold")
        return RegisterReply(job, advice[-1].batch_size, advice[-1].phase, advice[-1].advice)

    def _name(self, workload: str) -> str:
        """A name that no running job has, nor one that ended lately and is still told of."""
        taken = {*self._sessions, *(summary.job for summary in self._loop.ledger.ended)}
        number, name = 1, workload
        while name in taken:
            number += 1
            name = f"{workload}-{number}"
        return name

    def steps(self, session: JobSession, report: StepsReport) -> None:
        """A job made progress."""
        now_s = self._loop.clock()
        # A window that ended long ago is news all the same; its time would only set the governor's clock back.
        late = now_s - report.end_s > _LATE_S
        self._loop.feed(
            ev.StepsReported(
                now_s if late else report.end_s,
                session.job or "",
                report.batch_size,
                report.steps,
                report.samples,
                report.elapsed_s,
                report.synced,
                report.seq_len_avg,
            )
        )

    def batch_applied(self, session: JobSession, batch_size: int, advice: int | None) -> None:
        """A job follows advice."""
        self._loop.feed(ev.BatchApplied(self._loop.clock(), session.job or "", batch_size, advice))

    def batch_failed(self, session: JobSession, batch_size: int, reason: str) -> None:
        """A job cannot use a batch size."""
        self._loop.feed(ev.BatchFailed(self._loop.clock(), session.job or "", batch_size, reason))

    def paused(self, session: JobSession, reason: str | None) -> None:
        """A job pauses, or goes on."""
        job, now_s = session.job or "", self._loop.clock()
        self._loop.feed(ev.JobResumed(now_s, job) if reason is None else ev.JobPaused(now_s, job, reason))

    def ended(self, session: JobSession, reason: str) -> None:
        """A job is over."""
        job = session.job or ""
        self._sessions.pop(job, None)
        self._loop.busy(bool(self._sessions))
        self._loop.feed(ev.JobEnded(self._loop.clock(), job, reason))
        self._loop.signatures.pop(job, None)
        log.info("job %s ended: %s", job, reason, extra=fields(JOB_ENDED, job=job))

    # -- people ------------------------------------------------------------------------
    def query(self, method: str, params: dict[str, Any]) -> object:
        """Answer a method that only reads."""
        match method:
            case "status":
                return self._status()
            case "jobs":
                now = self._loop.clock()
                return {
                    "running": [s.to_json() for s in self._loop.ledger.running(now)],
                    "ended": [s.to_json() for s in self._loop.ledger.ended[-_JOBS_TOLD:]],
                }
            case "explain":
                return self._explain(params.get("job"))
            case "cap.get":
                return self.caps.to_json()
            case "policy.get":
                return {"policy": self._policy.value, "objective": self._objective.value}
            case "profile.get":
                return self._sweep_json()
        raise Refused(text=f"{method} is not known here")

    def command(self, method: str, params: dict[str, Any], who: Peer) -> object:
        """Carry out an administrator's command."""
        if method == "policy.set":
            self._policy = PolicyName(params["policy"])
            self._objective = Objective(params.get("objective") or self._objective)
            self._loop.feed(ev.PolicyChanged(self._loop.clock(), self._policy, self._objective))
            return {"policy": self._policy.value, "objective": self._objective.value}
        if method in ("profile.start", "profile.stop"):
            return self._sweep(method, params)
        if method == "cap.set":
            self.caps.set(cap_in(params), who.uid, params["source"], params["ttl_s"], params["override"])
        else:
            self.caps.clear(params["source"])
        return self.caps.to_json()

    def configured(self, old: Config, new: Config) -> None:
        """Take over what a reload changed. What people have set since the start stays where the files say the same."""
        loop = self._loop
        if (new.cap, new.cap_sources) != (old.cap, old.cap_sources):
            self.caps.configured(new.cap, new.cap_sources)
        if any(new.values[key] != old.values[key] for key in ("policy", "objective")):
            self._policy, self._objective = PolicyName(new.values["policy"]), Objective(new.values["objective"])
            loop.feed(ev.PolicyChanged(loop.clock(), self._policy, self._objective))
        if new.values["guard"] != old.values["guard"]:
            loop.feed(ev.GuardChanged(loop.clock(), new.guard(loop.sampler.rule)))
        if new.corrections != old.corrections:
            loop.sampler.correct(new.corrections)

    def _sweep(self, method: str, params: dict[str, Any]) -> object:
        loop = self._loop
        if method == "profile.stop":
            loop.feed(ev.SweepStopped(loop.clock()))
            return self._sweep_json()
        done = {job: loop.sweeps.get(loop.board, signature) for job, signature in loop.signatures.items()}
        loop.feed(
            request(
                params, now_s=loop.clock(), jobs=list(self._sessions), board=loop.board,
                capped=self.caps.now.cap is not None, done=done,
            )
        )  # fmt: skip
        return self._sweep_json()

    def _sweep_json(self) -> dict[str, Any]:
        """The sweep that was last asked for, with its rows; ``sweep`` null where there was none."""
        run = self._loop.governor.sweep
        if run is None:
            return {"sweep": None, "rows": []}
        return {"sweep": run.to_json(), "rows": [vars(row) for row in run.rows]}

    def _explain(self, job: str | None) -> list[dict[str, Any]]:
        decisions = list(self._loop.decisions)
        if job is None:
            return decisions
        ended = [summary.job for summary in self._loop.ledger.ended]
        known = list(dict.fromkeys([*self._sessions, *reversed(ended), *(d["job"] for d in decisions if d["job"])]))
        if job not in known:
            there_are = f"there are {', '.join(known[:_JOBS_TOLD])}" if known else "no job has registered yet"
            raise Refused(INVALID_PARAMS, f"no job {job!r} since the service started: {there_are}")
        return [d for d in decisions if d["job"] in (None, job)]

    def _cap_changed(self, cap: Cap | None, source: str) -> None:
        self._loop.feed(ev.CapChanged(self._loop.clock(), cap, source))

    def _status(self) -> dict[str, Any]:
        loop = self._loop
        sample, board, snapshot, now_s = loop.sample, loop.board, loop.governor.snapshot(), loop.clock()
        summaries = {summary.job: summary for summary in loop.ledger.running(now_s)}
        return {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "board": board.name,
            "release": board.release,
            "power_mode": board.power_mode,
            "gpu_node": None if loop.worker.node is None else loop.worker.node.path,
            "clocks_hz": list(board.gpu_frequencies_hz),
            "rails": loop.sampler.describe(),
            "telemetry": {"state": loop.telemetry[0], "text": loop.telemetry[1], **vars(loop.source.counters)},
            "input_power_w": None if sample is None else sample.input_power_w,
            "compute_power_w": None if sample is None else sample.compute_power_w,
            "gpu_frequency_hz": None if sample is None else sample.gpu_frequency_hz,
            "gpu_utilization": None if sample is None else sample.gpu_utilization,
            "sample_age_s": None if sample is None else loop.clock() - sample.t_s,
            **snapshot,
            "jobs": [job_progress(loop, job, summaries[job["job"]], now_s) for job in snapshot["jobs"]],
            "cap_source": self.caps.now.source,
            "cap_window_s": None if self.caps.now.cap is None else self.caps.now.cap.window_s,
            "conditions": {**snapshot["conditions"], **loop.conditions},
        }
