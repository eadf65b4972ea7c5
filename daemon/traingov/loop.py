"""The shell around the governor: feeds it events and carries its actions out. Thin on purpose; desk.py answers people.

Follow one sample: telemetry source → ``_reading`` → Sampler → ``feed`` → Governor.handle → ``_carry_out`` →
DeviceWorker.set_bounds → (its thread) GpuKnob → ``_written`` → ``feed(KnobReadBack)``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from traingov_policies import actions as act
from traingov_policies import events as ev
from traingov_policies.governor import Governor
from traingov_policies.ledger import Ledger
from traingov_policies.lut import Lut
from traingov_policies.search.curves import Curve
from traingov_policies.settings import Settings
from traingov_policies.values import Board

from .config import Config
from .data import data_dir
from .decisions import Decisions
from .device.devfreq import WriteResult
from .device.files import SystemFiles
from .device.health import HealthWorker
from .device.restore import RestoreReport
from .device.worker import DeviceWorker, Look
from .history.curves import CurveStore
from .history.scribe import Scribe
from .journal_log import CLOCK_GIVEN_BACK, CLOCK_SET, CONDITION, DECIDED, KNOB_TROUBLE, fields
from .keeper import Keeper
from .metrics.counts import Counts
from .recorder import Recorder
from .store import LutStore
from .sweeps import SweepStore
from .telemetry.choose import open_source
from .telemetry.reading import Reading
from .telemetry.samples import Sampler

log = logging.getLogger("traingov.loop")

_TICK_S = 0.1
_LOOK_S = 1.0
_STUCK_S = 2.0
_RESTORE_FIRST_S, _RESTORE_MOST_S = 0.5, 30.0


class Loop:
    """Everything runs on the event loop's thread; knob and disk have threads of their own."""

    def __init__(
        self, config: Config, settings: Settings, board: Board, *, worker: DeviceWorker, sampler: Sampler,
        recorder: Recorder | None = None, clock: Callable[[], float] = time.monotonic, telemetry: str = "tegrastats",
    ) -> None:  # fmt: skip
        self.clock = clock
        self.board = board
        self.worker = worker
        self.sampler = sampler
        self.governor = Governor(board, settings, config.cap)
        self.ledger = Ledger(settings.sampling_interval_s, config.cap)
        self.luts = LutStore(config.state_dir / "lut", [config.state_dir / "priors", data_dir() / "luts"])
        self.sweeps = SweepStore(config.state_dir / "sweeps")
        self.curves = CurveStore(config.state_dir / "curves")
        self.signatures: dict[str, str] = {}
        self.decisions = Decisions()
        self.counts = Counts(self.ledger)
        self.sample: ev.Sample | None = None
        self.reading: Reading | None = None
        self.telemetry = ("stopped", "not started")
        self.source = open_source(telemetry, config.root, config.tegrastats, self._reading, self._source_state)
        self.source.set_interval(settings.idle_interval_s)
        self._advise: Callable[[act.AdviseBatch], None] = lambda advice: None
        self._recorder = recorder
        self._keeper = Keeper()
        self._old_tables = settings.drift.history
        self.history = Scribe(
            config.state_dir / "history.sqlite", self.ledger, settings, config.cap, keep=self._keeper.keep,
            root=None if config.root == "/" else config.root,
        )  # fmt: skip
        self._health = HealthWorker(SystemFiles(config.root), self._fares, clock)
        self._absent: tuple[str, ...] = ()
        self._busy = False
        self._tick_timer: asyncio.TimerHandle | None = None
        self._ticked_s = clock()
        self._next_look_s = 0.0
        self.conditions: dict[str, str] = {}
        self._restore_timer: asyncio.TimerHandle | None = None
        self._restore_wait_s = _RESTORE_FIRST_S

    # -- life ----------------------------------------------------------------------------------------------------
    def start(self, advise: Callable[[act.AdviseBatch], None]) -> None:
        """Begin sampling at the idle rate (or not at all). Advice to jobs goes to ``advise``."""
        self._advise = advise
        self.worker.attach(asyncio.get_running_loop())
        self._health.attach(asyncio.get_running_loop())
        self.history.begin()
        self.source.start()

    def busy(self, yes: bool) -> None:
        """Whether any job is registered: without one nothing ticks."""
        if not self._busy:
            self._ticked_s = self.clock()
        self._busy = yes
        self._health.busy(yes)
        if yes and self._restore_timer is not None:
            self._restore_timer.cancel()  # the journal keeps the true originals for when this job ends
            self._restore_timer = None
        self._next_look_s = self.clock() + _LOOK_S
        self._schedule_tick()

    def stuck(self) -> str | None:
        """Why the control loop makes no progress, for the watchdog; None while it does."""
        late_s = self.clock() - self._ticked_s
        if not self._busy or late_s < _STUCK_S:
            return None
        return f"jobs are registered, but no tick of the control loop was finished for {late_s:.1f} s"

    def look_at_board(self) -> None:
        """Find out who the board is and which clocks it allows now; tell the governor when that changed."""
        board = self.worker.find()
        if board != self.board:
            log.info("board is now %s %s, mode %s", board.name, board.release, board.power_mode)
            self.board = board
            self.feed(ev.BoardFound(self.clock(), board))

    def keep(self, what: str, write: Callable[[], None]) -> None:
        """Have something written to disk soon, by the thread for that."""
        self._keeper.keep(what, write)

    def tell(self, name: str, text: str | None) -> None:
        """A condition of the shell's own: holds with ``text`` from now on, or with None no longer. Said once."""
        if text is None:
            if self.conditions.pop(name, None) is not None:
                log.info("%s: no longer", name, extra=fields(CONDITION, condition=name))
        elif self.conditions.get(name) != text:
            self.conditions[name] = text
            log.warning("%s: %s", name, text, extra=fields(CONDITION, condition=name))

    async def stop(self) -> RestoreReport:
        """Give the knob back and end every child and thread. The sessions have been ended before."""
        for timer in (self._tick_timer, self._restore_timer):
            if timer is not None:
                timer.cancel()
        self.source.stop()
        self._health.close()
        report = await asyncio.get_running_loop().run_in_executor(None, self.worker.restore_now, 5.0)
        await self.source.wait_stopped()
        self.worker.close()
        self.history.close()
        self._keeper.close()
        return report

    def feed(self, event: ev.Event) -> None:
        """Give the governor one event and carry out what it answers."""
        self.ledger.see(event)
        self.counts.see(event)
        answer = self.governor.handle(event)
        if isinstance(event, ev.Sample):
            self.history.sample(event, answer)
        else:
            self.history.see(event, answer, self.board, self.signatures)
        recorder = self._recorder
        if recorder is not None:
            recorder.event(event)
            for action in answer:
                recorder.action(action)
        for action in answer:
            self._carry_out(action)

    def _carry_out(self, action: act.Action) -> None:
        self.counts.carried_out(action)
        match action:
            case act.SetGpuBounds(min_hz, max_hz, reason):
                log.info(
                    "GPU clock to %g MHz: %s", max_hz / 1e6, reason, extra=fields(CLOCK_SET, knob=self._knob_path())
                )
                self.worker.set_bounds(min_hz, max_hz, self._written)
            case act.RestoreGpuBounds(reason):
                log.info("GPU bounds given back: %s", reason)
                self._give_back()
            case act.AdviseBatch():
                self._advise(action)
            case act.JobIdle():
                self.ledger.act(action)
            case act.SetSamplingInterval(interval_s):
                self.source.set_interval(interval_s)
            case act.PersistLut(lut, job, replaces):
                self._persist(lut, job, replaces)
            case act.PersistSweep(job, rows):
                signature, board = self.signatures.get(job, job), self.board
                self.sweeps.remember(board, signature, rows)
                self._keeper.keep(f"sweep {signature}", lambda: self.sweeps.save(board, signature, rows))
            case act.PersistCurve(curve, job):
                self._persist_curve(curve, job)
            case act.RaiseCondition(name, text):
                log.warning("%s: %s", name, text, extra=fields(CONDITION, condition=name))
            case act.ClearCondition(name):
                log.info("%s: no longer", name, extra=fields(CONDITION, condition=name))
            case act.Decided(job, kind, text):
                log.info("%s%s: %s", f"{job} " if job else "", kind, text, extra=fields(DECIDED, job=job))
                self.decisions.add(self.clock(), action, _now())

    # -- telemetry and knob --------------------------------------------------------------------------------------
    def _reading(self, t_s: float, reading: Reading) -> None:
        sampler = self.sampler
        if sampler.corrections:
            reading = sampler.corrected(reading)
        sample = sampler.sample(t_s, reading)
        self.sample, self.reading = sample, reading
        self.feed(sample)
        if sampler.absent is not self._absent:
            self._absent = sampler.absent
            self.tell("rails-unknown", _unknown_rails(self._absent, reading.rails_w) if self._absent else None)
        self.counts.sampled(t_s, self.clock())

    def _fares(self, event: ev.Thermals | ev.OverCurrentCounted) -> None:
        if self._busy:
            self.feed(event)

    def _source_state(self, state: str, text: str) -> None:
        self.telemetry = (state, text)
        if state != "running":
            self.sample = self.reading = None  # an old reading is not a present one
        log.log(logging.INFO if state in ("running", "stopped") else logging.WARNING, "telemetry %s: %s", state, text)

    def _tick(self) -> None:
        now = self.clock()
        self.feed(ev.Tick(now))
        if now >= self._next_look_s:
            self._next_look_s = now + _LOOK_S
            self.worker.look(self._looked)
        self._ticked_s = now
        self._tick_timer = None
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        if self._busy and self._tick_timer is None:
            self._tick_timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _written(self, result: WriteResult) -> None:
        for note in result.notes:
            log.warning("knob: %s", note, extra=fields(KNOB_TROUBLE, knob=self._knob_path()))
        self.counts.written(result.error, result.notes)
        actual = result.actual
        self.feed(
            ev.KnobReadBack(
                self.clock(),
                result.requested_min_hz,
                result.requested_max_hz,
                actual.min_hz,
                actual.max_hz,
                result.error,
            )
        )

    def _knob_path(self) -> str | None:
        return None if self.worker.node is None else self.worker.node.path

    def _looked(self, look: Look) -> None:
        if not self._busy:
            return
        if look.board is not None and look.board != self.board:
            self._board_changed(look.board)  # the bounds seen with it are nvpmodel's, not some program's
        else:
            bounds = look.bounds
            low, high = (None, None) if bounds is None else (bounds.min_hz, bounds.max_hz)
            self.feed(ev.KnobReadBack(self.clock(), None, None, low, high))

    def _board_changed(self, board: Board) -> None:
        """The power mode changed in mid-job. What was measured is kept under the old one; the store answers anew."""
        log.info("power mode is now %s (was %s)", board.power_mode, self.board.power_mode)
        self.board = board
        stored = []
        for job in self.ledger.running(self.clock()):
            signature = self.signatures.get(job.job, job.workload)
            stored.append(
                ev.Stored(
                    job.job,
                    self.luts.get(board, signature),
                    self.luts.prior(board, signature, job.workload),
                    self.curves.of(board, signature),
                    self.curves.others(board, signature),
                )
            )
        self.feed(ev.BoardFound(self.clock(), board, tuple(stored)))

    def _give_back(self) -> None:
        self._restore_timer = None
        self.worker.restore(self._restored)

    def _restored(self, report: RestoreReport) -> None:
        self.counts.restores.count(report.status)
        if report.status != "failed":
            log.info(
                "restore %s: %s", report.status, report.text, extra=fields(CLOCK_GIVEN_BACK, knob=self._knob_path())
            )
            self.conditions.pop("not-given-back", None)
            self._restore_wait_s = _RESTORE_FIRST_S
            return
        log.error("restore failed: %s", report.text, extra=fields(KNOB_TROUBLE, knob=self._knob_path()))
        self.conditions["not-given-back"] = f"the GPU's bounds could not be given back, tried again: {report.text}"
        if not self._busy and self._restore_timer is None:
            self._restore_timer = asyncio.get_running_loop().call_later(self._restore_wait_s, self._give_back)
            self._restore_wait_s = min(2 * self._restore_wait_s, _RESTORE_MOST_S)

    def _persist(self, lut: Lut, job: str, replaces: str | None) -> None:
        signature, board = self.signatures.get(job, lut.workload), self.board
        known = self.luts.get(board, signature)
        if known is not None and replaces is not None:
            old, most = known, self._old_tables
            self._keeper.keep(
                f"old table {signature}", lambda: self.luts.archive(board, signature, old, replaces, most)
            )
            known = None
        kept = lut if known is None else known.overlaid(lut)  # batch sizes that this job does not use are not lost
        kept = replace(kept, signature=signature, measured_at=_now())
        self.luts.remember(board, signature, kept)
        self._keeper.keep(f"table {signature}", lambda: self.luts.save(board, signature, kept))

    def _persist_curve(self, curve: Curve, job: str) -> None:
        signature, board = self.signatures.get(job, curve.workload), self.board
        kept = self.curves.remember(board, signature, curve, _now())
        self._keeper.keep(f"energy curve {signature}", lambda: self.curves.save(board, signature, kept))


def _unknown_rails(absent: Iterable[str], shown: Iterable[str]) -> str:
    names = ", ".join(sorted(shown)) or "none"
    return f"rails: this board shows no {', '.join(absent)}, so its gain and offset are not used; it shows {names}"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
