"""What `traingov status` shows, as lines of text: a pure function of the service's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .times import clock_time, duration, energy

Status = Mapping[str, Any]

_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-:=+*#"

_IDLE_TOLD_S = 0.1


@dataclass(frozen=True)
class Row:
    """A line: its name, its text, and "warning" or "good" where it should stand out."""

    label: str
    text: str
    mood: str = ""


def rows(s: Status) -> list[Row]:
    """The answer in words, a row for each fact. What is not known is said to be so."""
    board = Row("board", f"{s['board']}, {s['release']}, power mode {s['power_mode']}")
    gpu = Row("GPU", s["gpu_node"] or "no devfreq node found", "" if s["gpu_node"] else "warning")
    state, text = s["telemetry"]["state"], s["telemetry"]["text"]
    said = f"{state}: {text}"
    if state == "stopped" and not s["jobs"]:
        said = "idle: sampling starts with a job"
    out = [board, gpu, Row("telemetry", said, "" if state in ("running", "stopped") else "warning")]
    over = s["cap_w"] is not None and s["input_power_w"] is not None and s["input_power_w"] > s["cap_w"]
    power = f"{watts(s['input_power_w'])} input, {watts(s['compute_power_w'])} compute; cap {_cap(s)}"
    out.append(Row("power", power, "warning" if over else ""))
    busy = "" if s["gpu_utilization"] is None else f", {100 * s['gpu_utilization']:.0f} % busy"
    out.append(Row("clock", f"{_now_hz(s['gpu_frequency_hz'])}{busy}, target {_target(s['gpu_target_hz'])}{_held(s)}"))
    out.append(Row("policy", f"{s['policy']} ({s['objective']})"))
    out.append(Row("state", s["doing"] if s["doing"].startswith(s["state"]) else f"{s['state']}: {s['doing']}"))
    if s["decision"]:
        out.append(Row("why", s["decision"]))
    for job in s["jobs"]:
        out += _job(job)
    out += [Row("condition", f"{name}: {said}", "warning") for name, said in s["conditions"].items()]
    return out


def line(s: Status) -> str:
    """The answer in one line, for a log."""
    parts = [f"{clock_time(s['at'])} {s['state']}: {watts(s['input_power_w'])}, cap {_cap(s)}",
             _now_hz(s["gpu_frequency_hz"])]  # fmt: skip
    parts += [f"{job['job']} batch {job['batch_size']}, {_progress(job)}" for job in s["jobs"]]
    parts += [f"{name}!" for name in s["conditions"]]
    return "; ".join(parts)


def bar(power_w: float, cap_w: float, width: int, *, ascii_only: bool = False) -> str:
    """Power as a bar of ``width`` cells whose end is the cap; a mark beyond it where power is above."""
    full, empty, over = ("#", "-", "!") if ascii_only else ("█", "░", "▶")
    cells = max(0, min(width, round(width * power_w / cap_w)))
    return full * cells + empty * (width - cells) + (over if power_w > cap_w else "")


def sparkline(values: Sequence[float | None], top: float, *, ascii_only: bool = False) -> str:
    """A character for each value, from 0 to ``top``; a gap where a reading is missing."""
    levels = _ASCII_LEVELS if ascii_only else _LEVELS
    return "".join(
        " " if value is None or top <= 0 else levels[max(0, min(len(levels) - 1, int(len(levels) * value / top)))]
        for value in values
    )


def watts(value: float | None) -> str:
    """Power; a dash where it is not known."""
    return "—" if value is None else f"{value:.2f} W"


def _job(job: Mapping[str, Any]) -> list[Row]:
    out = [
        Row("job", f"{job['job']}: batch {job['batch_size']}, {_progress(job)}, in {job['steps']} steps"),
        Row(
            "energy",
            f"{energy(job['input_energy_j'])} input, {energy(job['compute_energy_j'])} compute in "
            f"{duration(job['elapsed_s'])}, {job['above_cap_s']:.1f} s above the cap"
            + ("; its part, another job ran in the meantime" if job["shared"] else "")
            + (f"; idle for {duration(job['idle_s'])} of it" if job["idle_s"] >= _IDLE_TOLD_S else ""),
        ),
    ]
    saved = job["saved"]
    return [*out, Row("saved", _saved(saved), "good" if saved and (saved["energy"] or 0) > 0 else "")]


def _progress(job: Mapping[str, Any]) -> str:
    total, samples, rate = job["samples_total"], job["samples"], job["samples_per_s"]
    text = f"{samples} samples" if total is None else f"{samples} of {total} samples"
    if total:
        text += f" ({min(100.0, 100 * samples / total):.0f} %)"
    if rate is not None:
        text += f", {rate:.4g}/s"
    if job["remaining_s"] is not None:
        text += f", {duration(job['remaining_s'])} left"
    return text


def _saved(saved: Mapping[str, Any] | None) -> str:
    if saved is None:
        return "not known: neither a sweep nor the table of this workload has both points"
    how = "measured by its energy sweep" if saved["source"] == "sweep" else "estimated from its table"
    share = "energy not known" if saved["energy"] is None else f"{100 * saved['energy']:+.1f} % {saved['power']} energy"
    return f"{share}, {100 * saved['time']:+.1f} % time against {saved['against']} ({how})"


def _cap(s: Status) -> str:
    if s["cap_w"] is None:
        return "none"
    window = s.get("cap_window_s")
    return f"{s['cap_w']:g} W" + ("" if window is None else f" over {window:g} s")


def _now_hz(value: int | None) -> str:
    return "clock not known" if value is None else f"{value / 1e6:g} MHz"


def _target(value: int | None) -> str:
    return "as the board's own governor sets it" if value is None else f"{value / 1e6:g} MHz"


def _held(s: Status) -> str:
    by = s.get("gpu_held_by")
    return "" if by is None else f", held at {_now_hz(s['gpu_limit_hz'])} by {by}"
