"""The whole-governor scenarios of ``traingov-sim evaluate drift``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from traingov_policies.lut import Lut
from traingov_sim.cli import main
from traingov_sim.evaluate.cap_run import Setting
from traingov_sim.evaluate.drift_run import SOURCES, disturbed_truth, run, table_error

NANO = Setting("nano", "resnet18", (8, 32, 128))
BY_NAME = {source.name: source for source in SOURCES}


def exact(setting: Setting, factor: float = 1.0) -> Lut:
    truth = setting.truth()
    times = truth.seconds / setting.samples[:, None] * 4096 * factor

    def grid(values):
        return tuple(tuple(map(float, row)) for row in values)

    measured = tuple(("measured",) * len(truth.clocks_hz) for _ in setting.batch_sizes)
    return Lut(
        "nano", "resnet18", 4096, setting.batch_sizes, truth.clocks_hz,
        grid(times), grid(truth.peak_w), grid(truth.peak_w), origin=measured,
    )  # fmt: skip


def test_a_true_table_has_no_error_and_a_wrong_one_its_own() -> None:
    truth = NANO.truth()
    assert table_error(exact(NANO), truth, NANO, "time") == pytest.approx(0.0, abs=1e-9)
    assert table_error(exact(NANO, 1.04), truth, NANO, "time", measured=True) == pytest.approx(0.04)
    assert table_error(exact(NANO), truth, NANO, "power") == pytest.approx(0.0, abs=1e-9)
    assert table_error(None, truth, NANO, "time") is None


def test_the_disturbed_truth_is_the_surface_that_the_board_then_runs() -> None:
    calm, busy = NANO.truth(), disturbed_truth(NANO, BY_NAME["memory contention"])
    ratio = busy.seconds / calm.seconds
    assert ratio.min() > 1.0
    assert ratio.max() / ratio.min() > 1.05
    warm = disturbed_truth(NANO, BY_NAME["thermal soak"])
    assert (warm.seconds == calm.seconds).all()
    assert (warm.peak_w > 1.02 * calm.peak_w).all()
    same = disturbed_truth(NANO, BY_NAME["none"])
    assert (same.seconds == calm.seconds).all()


@pytest.mark.slow
def test_without_a_source_nothing_is_noticed_and_a_strong_one_is() -> None:
    five = Setting("nano", "resnet18", (8, 16, 32, 64, 128))
    clean = run(five, BY_NAME["none"], 5, 600.0)
    assert (clean.expected, clean.noticed_s, clean.remeasured) == (False, None, 0)
    assert clean.verdict == "rightly ignored"
    busy = run(five, BY_NAME["memory contention"], 5, 600.0)
    assert busy.expected
    assert busy.verdict == "detected"
    assert busy.noticed_s is not None
    assert busy.noticed_s < 120
    assert busy.after_error is not None
    assert busy.before_error is not None
    assert busy.after_error < busy.before_error


@pytest.mark.slow
def test_the_command_prints_scenarios_as_json() -> None:
    result = CliRunner().invoke(main, ["evaluate", "drift", "--quick", "--part", "scenarios", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["scenarios"]["rows"]
    assert [r["source"] for r in rows] == ["none", "memory contention", "power mode"]
    assert all(r["kind"] == "predicted" for r in rows)
