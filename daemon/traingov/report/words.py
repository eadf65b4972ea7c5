"""The report in plain words: what both the page and the terminal say. Pure functions of the subject."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from traingov_policies.saving import Saving, from_sweep, from_table
from traingov_policies.values import OperatingPoint

from ..cli.times import duration, energy
from ..history.records import PointUse, Run
from .subject import Subject

_GOALS = {"time": "least time to accuracy", "energy": "least energy to accuracy", "edp": "least energy times time"}
_POLICIES = {"energy": "the clock of least energy", "fixed": "one clock", "observe": "which only watches"}
_TOLD_S = 0.05
_MODE0_LEAST_S = 10.0  # of the board's own governor, for a comparison with it


@dataclass(frozen=True)
class Comparison:
    """Shares saved against something: 0.2 for a fifth less, None where not known. ``how`` says how it is known."""

    against: str
    energy: float | None
    time: float | None
    power: str
    how: str


def title(subject: Subject) -> str:
    """The report's name."""
    return f"{subject.run.job} on {subject.run.board}"


def kind(subject: Subject) -> str:
    """What the figures are, in one sentence: a virtual board's readings are simulated."""
    if subject.virtual:
        return (
            "Simulated: power, clock and step times are a virtual board's "
            f"(its files lie below {subject.run.root}), not those of a Jetson."
        )
    if not subject.told:
        return "The recording does not say whether the board was a real or a virtual (simulated) one."
    return "Measured on this board by its own sensors."


def summary(subject: Subject) -> list[str]:
    """The run in sentences."""
    run = subject.run
    goal = _POLICIES.get(run.policy) or _GOALS.get(run.objective, run.objective)
    out = [
        f"{run.job} trained for {duration(run.elapsed_s)} on {run.board} ({run.release}, power mode {run.power_mode}), "
        f"governed by policy {run.policy} ({goal}). {_end(run)}",
        _work(subject),
        _energy(run),
        _cap(subject),
    ]
    if run.guard_steps:
        times = "once" if run.guard_steps == 1 else f"{run.guard_steps} times"
        out.append(f"The guard moved the clock {times}.")
    measured = sum(choice.kind == "measured" for choice in run.choices)
    if measured:
        out.append(f"{measured} operating points were measured in this run, with its own training steps.")
    held = sorted({notice.name for notice in run.notices if notice.text is not None})
    if held:
        out.append(f"Conditions that held at some time: {', '.join(held)}.")
    if run.shared:
        out.append("Another job ran in the meantime: energies are this job's part.")
    return out + [_compared(c) for c in comparisons(subject)]


def comparisons(subject: Subject) -> list[Comparison]:
    """What the point that trained most saves: only from measurements of this workload on this board."""
    used = subject.trained_at
    if used is None or used.gpu_frequency_hz is None:
        return []
    here = OperatingPoint(used.batch_size, used.gpu_frequency_hz)
    out: list[Comparison | None] = []
    measured = from_sweep(subject.sweep, here.gpu_frequency_hz)
    if measured is not None:
        out.append(_of(measured, "measured by an energy sweep of this workload"))
    out += [_mode0(subject, used, number, use) for number, use in list(subject.in_mode0.items())[:3]]
    if subject.lut is not None and subject.run.points:
        table = from_table(subject.lut, subject.relation, subject.run.points[0].batch_size, here)
        if table is not None:
            out.append(_of(table, "estimated from the table of this workload"))
    known = [c for c in out if c is not None]
    return [_simulated(c) for c in known] if subject.virtual else known


def not_compared(subject: Subject) -> str:
    """What to say where there is no comparison."""
    return (
        "What was saved is not known: neither an energy sweep, nor a run in mode 0, nor the table of this workload "
        "has both points. traingov profile --energy measures mode 0."
        if not comparisons(subject)
        else ""
    )


def share(value: float | None) -> str:
    """A saved share as people read it."""
    if value is None:
        return "not known"
    return f"{100 * abs(value):.1f} % {'less' if value >= 0 else 'more'}"


def when(subject: Subject, at_s: float) -> str:
    """A moment of the run: seconds since it began, and the time of the day where it is known."""
    since = f"+{at_s - subject.run.started_s:.1f} s"
    return f"{datetime.fromtimestamp(at_s):%H:%M:%S} ({since})" if subject.wall else since


def clock(hz: int | None) -> str:
    """A clock; None is the board's own governor."""
    return "board's own governor" if hz is None else f"{hz / 1e6:.0f} MHz"


def cap_text(power_w: float | None, window_s: float | None) -> str:
    """A cap in words."""
    if power_w is None:
        return "none"
    return f"{power_w:g} W" + ("" if window_s is None else f" over {window_s:g} s")


def _end(run: Run) -> str:
    if run.end_reason is None:
        return "It still runs: this is the state of a moment."
    return {"end": "The job said that it was done."}.get(run.end_reason, f"It ended: {run.end_reason}.")


def _work(subject: Subject) -> str:
    run, used = subject.run, subject.trained_at
    total = "" if run.samples_total is None else f" of {run.samples_total}"
    before = f", after {run.samples_done} in an earlier run" if run.samples_done else ""
    text = f"It trained {run.samples}{total} samples in {run.steps} steps{before}"
    if used is None or not run.samples:
        return text + "."
    part = f"{100 * used.samples / run.samples:.0f} %"
    return f"{text}; {part} of them with batch {used.batch_size} at {clock(used.gpu_frequency_hz)}."


def _energy(run: Run) -> str:
    if run.input_energy_j is None:
        return "No sensor showed the power of the board, so its energy is not known."
    seen_s = run.elapsed_s - run.gap_s
    mean = f", {run.input_energy_j / seen_s:.2f} W on average" if seen_s > 0 else ""
    text = f"The board used {energy(run.input_energy_j)}{mean}"
    if run.compute_energy_j is not None:
        text += f"; GPU and CPU {energy(run.compute_energy_j)} of it"
    if run.gap_s >= _TOLD_S:
        text += f". {duration(run.gap_s)} without a reading are not in it"
    return text + "."


def _cap(subject: Subject) -> str:
    run = subject.run
    caps = [cap for cap in run.caps if cap.power_w is not None]
    if not caps:
        return "There was no power cap."
    least, most = min(c.power_w or 0.0 for c in caps), max(c.power_w or 0.0 for c in caps)
    name = f"the cap of {least:g} W" if least == most else f"the caps of {least:g} to {most:g} W"
    if run.judged_s <= 0:
        return f"Nothing told whether power stayed below {name}."
    window = caps[-1].window_s
    mean = "Mean input power" if window is None else f"Input power, as the mean over {window:g} s,"
    judged = duration(run.judged_s)
    if run.above_cap_s <= 0:
        return f"{mean} stayed below {name} in all of the {judged} that were judged."
    part = 100 * run.above_cap_s / run.judged_s
    return f"{mean} lay above {name} for {run.above_cap_s:.1f} s of the {judged} that were judged ({part:.1f} %)."


def _mode0(subject: Subject, used: PointUse, number: int, zero: PointUse) -> Comparison | None:
    """Energy and time per sample, weighted by samples to accuracy where the batch sizes differ."""
    if zero.time_s < _MODE0_LEAST_S or not zero.samples or not zero.input_energy_j or not used.input_energy_j:
        return None
    weight = 1.0
    if zero.batch_size != used.batch_size:
        relation = subject.relation
        r = {} if relation is None else dict(zip(relation.batch_sizes, relation.relative_samples, strict=True))
        here, there = r.get(used.batch_size), r.get(zero.batch_size)
        if here is None or there is None:
            return None
        weight = here / there
    return Comparison(
        f"mode 0 (batch {zero.batch_size})",
        1 - weight * (used.input_energy_j / used.samples) / (zero.input_energy_j / zero.samples),
        1 - weight * (used.time_s / used.samples) / (zero.time_s / zero.samples),
        "input", f"measured: {zero.samples} samples in mode 0 in run {number}",
    )  # fmt: skip


def _of(saving: Saving, how: str) -> Comparison:
    return Comparison(saving.against, saving.energy, saving.time, saving.power, how)


def _simulated(c: Comparison) -> Comparison:
    return Comparison(c.against, c.energy, c.time, c.power, f"{c.how}; simulated")


def _compared(c: Comparison) -> str:
    spent = "" if c.energy is None else f"{share(c.energy)} {c.power} energy and "
    return f"Against {c.against}: {spent}{share(c.time)} time ({c.how})."
