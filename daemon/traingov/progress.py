"""How far each running job is, for ``traingov status``: progress, speed, energy so far, and what is saved."""

from __future__ import annotations

from typing import Any

from traingov_policies.events import JobRegistered
from traingov_policies.ledger import JobSummary
from traingov_policies.saving import Saving, from_sweep, from_table
from traingov_policies.values import OperatingPoint

from .loop import Loop


def job_progress(loop: Loop, job: dict[str, Any], summary: JobSummary, now_s: float) -> dict[str, Any]:
    """``job`` of the governor's snapshot with what is known besides; what is not known is None."""
    name = str(job["job"])
    registered = loop.history.book.registration(name)
    rate = loop.history.book.samples_per_s(name, now_s)
    total = None if registered is None else registered.samples_total
    left = None if total is None else max(0, total - job["samples"])
    saving = None if registered is None else _saving(loop, job, registered)
    return {
        **job,
        "samples_total": total,
        "samples_per_s": rate,
        "remaining_s": left / rate if left is not None and rate else None,
        "elapsed_s": summary.elapsed_s,
        "input_energy_j": None if summary.mean_input_power_w is None else summary.input_energy_j,
        "compute_energy_j": summary.compute_energy_j if loop.history.book.compute_energy_known(name) else None,
        "above_cap_s": summary.above_cap_s,
        "shared": summary.shared,
        "idle_s": summary.idle_s,
        "saved": None if saving is None else saving.to_json(),
    }


def _saving(loop: Loop, job: dict[str, Any], registered: JobRegistered) -> Saving | None:
    clock = loop.history.book.clock_hz
    signature = loop.signatures.get(registered.job)
    if clock is None or signature is None:
        return None
    measured = from_sweep(loop.sweeps.get(loop.board, signature), clock)
    if measured is not None:
        return measured
    lut = loop.luts.get(loop.board, signature)
    if lut is None:
        return None
    return from_table(lut, registered.relation, registered.batch_size, OperatingPoint(job["batch_size"], clock))
