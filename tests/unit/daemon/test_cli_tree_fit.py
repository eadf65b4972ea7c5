import json
import subprocess
import sys

import pytest

from command_line import traingov as run
from traingov_policies.sweep import SweepRow, to_csv

CLOCKS = (510_000_000, 714_000_000, 1_020_000_000)


@pytest.fixture
def sweep(tmp_path):
    """Shallow models are best at 510 MHz, deep ones at 714 MHz."""
    rows = []
    for layers in (4, 6, 12, 24):
        for task, length in (("a", 20.0), ("b", 40.0)):
            best = CLOCKS[layers > 7]
            for hz in (*CLOCKS, None):
                cost = 130.0 if hz is None else 100.0 + 10 * abs(CLOCKS.index(hz) - CLOCKS.index(best))
                rows.append(SweepRow(f"m{layers}/{task}", "bert", layers, 512, length, 50.0, hz, 9.0, cost, None))
    path = tmp_path / "sweep.csv"
    path.write_text(to_csv(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("more", [[], ["--cost-sensitive"], ["--folds", "grouped"]])
def test_a_fitted_tree_is_written_checked_and_applied(sweep, tmp_path, more):
    out = tmp_path / "t.json"
    fitted = json.loads(run("tree", "fit", str(sweep), "--out", str(out), "--json", *more).stdout)
    assert fitted["training"]["accuracy"] == 1.0
    assert fitted["majority"]["regret_mean"] >= 0
    assert sum(n for row in fitted["confusion"].values() for n in row.values()) == 8
    assert run("check", str(out)).exit_code == 0
    answer = json.loads(run("tree", "apply", "--tree", str(out), "--layers", "5", "--json").stdout)
    assert answer["gpu_frequency_hz"] == CLOCKS[0]


def test_rules_confusion_and_regret_are_printed(sweep):
    text = run("tree", "fit", str(sweep), "--cost-sensitive").stdout
    assert "510 MHz" in text
    assert "energy regret" in text
    assert "commonest label" in text


def test_the_trees_maximum_can_be_given_where_the_sweep_leaves_out_the_highest_clock(sweep):
    more = ("--max-frequency-hz", "1300500000", "--json")
    tree = json.loads(run("tree", "fit", str(sweep), "--cost-sensitive", *more).stdout)["tree"]
    assert tree["max_frequency_hz"] == 1_300_500_000


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["none.csv"], "none.csv: cannot be read"),
        (["{sweep}", "--features", "colour"], "'colour' is not one of"),
        (["{sweep}", "--energy", "input"], "no input energy"),
        (["{sweep}", "--max-frequency-hz", "5"], "--max-frequency-hz"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(sweep, arguments, what):
    result = run("tree", "fit", *(a.format(sweep=sweep) for a in arguments))
    assert result.exit_code == 2
    assert what in result.stderr
    assert result.stderr.count("\n") == 1


def test_fitting_by_regret_needs_no_scikit_learn(sweep):
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['sklearn.tree'] = None\n"
        "from traingov.cli.entry import main\n"
        f"sys.argv = ['traingov', 'tree', 'fit', {str(sweep)!r}, *sys.argv[1:]]\nmain()"
    )
    ok = subprocess.run([sys.executable, "-c", code, "--cost-sensitive"], capture_output=True, text=True, check=False)
    assert ok.returncode == 0, ok.stderr
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "pip install 'traingov[fit]'" in refused.stderr
