"""`traingov lut` and `traingov explain`: what they print, what they refuse, and that looking changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from command_line import traingov
from traingov.cli import explain as explain_module
from traingov.decisions import Decisions
from traingov.store import LutStore
from traingov_policies.actions import Decided
from traingov_policies.explaining import detail
from traingov_policies.lut import Lut
from traingov_policies.robust import choose
from traingov_policies.values import Board, OperatingPoint

NANO = "NVIDIA Jetson Nano Developer Kit"
BOARD = Board(NANO, "R32.7.4", "MAXN", ())
LUT = Lut(
    NANO, "resnet18", 64, (8, 16), (153_600_000, 921_600_000), ((40.0, 20.0), (30.0, None)), ((2.0, 3.0), (3.0, 4.5)),
    ((1.5, 2.5), (2.5, None)), origin=(("measured", "predicted"), ("measured", "infeasible")), release="R32.7.4",
    power_mode="MAXN", signature="resnet18-abc", measured_at="2026-01-01T00:00:00Z",
)  # fmt: skip


def run(*arguments: object) -> Result:
    return traingov(*(str(a) for a in arguments))


def saved(path: Path, lut: Lut = LUT) -> Path:
    path.write_text(json.dumps(lut.to_json()))
    return path


def board_root(tmp_path: Path, model: str = NANO) -> Path:
    """A recorded board's files: model, release, power mode."""
    root = tmp_path / "root"
    for path, text in {
        "proc/device-tree/model": model + "\0",
        "etc/nv_tegra_release": "# R32 (release), REVISION: 7.4, GCID: 1, BOARD: t210ref, EABI: aarch64\n",
        "var/lib/nvpmodel/status": "pmode:0000",
        "etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_list_names_every_table_and_prior_and_leaves_a_damaged_file_where_it_is(tmp_path: Path) -> None:
    store = LutStore(tmp_path / "lut")
    store.save(BOARD, "resnet18-abc", LUT)
    damaged = store.path(BOARD, "broken")
    damaged.write_text("{")
    prior = tmp_path / "priors" / "x" / "p.json"
    prior.parent.mkdir(parents=True)
    saved(prior, replace(LUT, board="TX2", signature=None))
    out = run("lut", "list", "--state-dir", tmp_path).stdout
    assert (
        f"{NANO}, R32.7.4, MAXN\n  resnet18-abc: 2 batch sizes × 2 clocks; 2 measured, 1 predicted, 1 infeasible" in out
    )
    assert "resnet18 (imported prior)" in out
    assert f"{damaged}: damaged" in out
    assert damaged.exists()
    found = json.loads(run("lut", "list", "--state-dir", tmp_path, "--json").stdout)
    assert [e["kind"] for e in found] == ["table", "table", "prior"]
    table = next(e for e in found if e["error"] is None)
    assert table["cells"] == {"measured": 2, "predicted": 1, "infeasible": 1, "failed": 0, "empty": 0}
    assert "no table" in run("lut", "list", "--state-dir", tmp_path / "none").stdout


def test_show_marks_origins_the_cap_and_the_choice(tmp_path: Path) -> None:
    LutStore(tmp_path / "lut").save(BOARD, "resnet18-abc", LUT)
    for name in ("resnet18-abc", "resnet18", saved(tmp_path / "t.json")):
        out = run("lut", "show", name, "--cap", "3.5", "--state-dir", tmp_path).stdout
        lines = out.splitlines()
        assert lines[0] == f"resnet18 on {NANO}, R32.7.4, MAXN"
        i = lines.index("peak power, W")
        assert lines[i + 2].split() == ["8", "2.00", "3.00~"]
        assert lines[i + 3].split() == ["16", "3.00«", "4.50^!"]
        assert lines[lines.index("time for 64 samples, s") + 3].split() == ["16", "30.00«", "—^!"]
        assert lines[-1] == "~ predicted; ^ given up above a cap; ! not below the cap; « chosen"
    assert json.loads(run("lut", "show", tmp_path / "t.json", "--json").stdout) == LUT.to_json()
    result = run("lut", "show", "nosuch", "--state-dir", tmp_path)
    assert (result.exit_code, "traingov lut list" in result.stderr) == (2, True)


def test_of_two_tables_of_one_name_the_files_are_named(tmp_path: Path) -> None:
    store = LutStore(tmp_path / "lut")
    for mode in ("MAXN", "5W"):
        store.save(replace(BOARD, power_mode=mode), "resnet18-abc", replace(LUT, power_mode=mode))
    result = run("lut", "show", "resnet18-abc", "--state-dir", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.count(".json") == 2


def test_what_is_exported_can_be_imported_and_is_found_by_the_service(tmp_path: Path) -> None:
    root = board_root(tmp_path)
    first, second = tmp_path / "one", tmp_path / "two"
    LutStore(first / "lut").save(BOARD, "resnet18-abc", LUT)
    exported = tmp_path / "e.json"
    assert run("lut", "export", "resnet18-abc", "-o", exported, "--state-dir", first).exit_code == 0
    assert json.loads(run("lut", "export", "resnet18-abc", "--state-dir", first).stdout) == LUT.to_json()
    result = run("lut", "import", exported, "--root", root, "--state-dir", second)
    assert result.exit_code == 0, result.stderr
    assert LutStore(second / "lut").get(BOARD, "resnet18-abc") == LUT
    assert not list(second.rglob("*.tmp"))
    again = run("lut", "import", exported, "--root", root, "--state-dir", second)
    assert (again.exit_code, "--replace" in again.stderr) == (2, True)
    assert run("lut", "import", exported, "--root", root, "--state-dir", second, "--replace").exit_code == 0


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"board": "TX2"}, "is of board 'TX2'"),
        ({"release": "R36.4"}, "is of release 'R36.4'"),
        ({"power_mode": None}, "does not state its power mode"),
    ],
)
def test_a_table_from_elsewhere_is_refused_and_as_a_prior_it_is_kept_apart(
    tmp_path: Path, changed: dict[str, Any], complaint: str
) -> None:
    root, state = board_root(tmp_path), tmp_path / "state"
    file = saved(tmp_path / "t.json", replace(LUT, **changed))
    result = run("lut", "import", file, "--root", root, "--state-dir", state)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "--as-prior" in result.stderr
    assert not state.exists()
    done = run("lut", "import", file, "--root", root, "--state-dir", state, "--as-prior", "--json")
    assert json.loads(done.stdout)["kind"] == "prior"
    store = LutStore(state / "lut", [state / "priors"])
    assert store.get(BOARD, "resnet18-abc") is None
    prior = store.prior(BOARD, "resnet18-abc")
    assert prior is not None
    assert {o for row in prior.origin or () for o in row} == {"predicted"}


def test_an_import_of_rubbish_or_on_no_board_or_without_room_says_what_is_wrong(tmp_path: Path) -> None:
    root = board_root(tmp_path)
    rubbish = tmp_path / "r.json"
    rubbish.write_text(json.dumps({**LUT.to_json(), "time_s": [[1.0]]}))
    result = run("lut", "import", rubbish, "--root", root, "--state-dir", tmp_path)
    assert (result.exit_code, "time_s must be 2 rows" in result.stderr) == (2, True)
    good = saved(tmp_path / "t.json")
    result = run("lut", "import", good, "--root", tmp_path / "empty", "--state-dir", tmp_path)
    assert (result.exit_code, "does not say what it is" in result.stderr) == (1, True)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    result = run("lut", "import", good, "--root", root, "--state-dir", in_the_way)
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)


def test_diff_tells_differences_and_whether_the_choice_changes(tmp_path: Path) -> None:
    # Half the samples in 60 % of the time: 20 % slower a sample. Power of one cell rises above the cap.
    faster = replace(LUT, samples=32, time_s=((24.0, 12.0), (18.0, None)), peak_power_w=((2.0, 3.0), (3.6, 4.5)))
    old, new = saved(tmp_path / "a.json"), saved(tmp_path / "b.json", faster)
    out = run("lut", "diff", old, new, "--cap", "3.5").stdout
    assert "time: 3 points, mean +20.00 %, mean absolute 20.00 %, largest +20.00 % (batch 8 at 154 MHz)" in out
    assert "peak power: 4 points, mean +5.00 %, mean absolute 5.00 %, largest +20.00 % (batch 16 at 154 MHz)" in out
    assert "the choice under 3.5 W changes from batch 16 at 154 MHz to batch 8 at 154 MHz" in out
    answer = json.loads(run("lut", "diff", old, new, "--cap", "3.5", "--json").stdout)
    assert answer["choice_changes"] is True
    assert answer["peak_power_w"]["largest"]["difference"] == pytest.approx(0.2)
    assert answer["time_s"]["compared"] == 3
    same = run("lut", "diff", old, old).stdout
    assert "the choice without a cap stays batch 16 at 154 MHz" in same


def test_diff_counts_what_only_one_table_has_and_refuses_tables_with_nothing_in_common(tmp_path: Path) -> None:
    old = saved(tmp_path / "a.json")
    new = saved(tmp_path / "b.json", replace(LUT.restricted([8]), board="TX2"))
    out = run("lut", "diff", old, new).stdout
    assert "2 points are in the first table only" in out
    assert f"two boards: {NANO} and TX2" in out
    other = saved(tmp_path / "c.json", replace(LUT, batch_sizes=(1, 2)))
    result = run("lut", "diff", old, other)
    assert (result.exit_code, "no point in common" in result.stderr) == (2, True)


def test_select_explains_offline_in_words_and_values(tmp_path: Path) -> None:
    file = saved(tmp_path / "t.json")
    out = run("select", "--lut", file, "--cap", "3.5", "--explain").stdout
    assert out.startswith("Chosen: batch 8 at 922 MHz")
    assert "predicted, not measured" in out
    answer = json.loads(run("select", "--lut", file, "--cap", "3.5", "--explain", "--json").stdout)
    assert answer["text"] == out.splitlines()
    assert answer["chosen"]["origin"] == "predicted"
    measured = run("select", "--lut", file, "--cap", "3.5", "--explain", "--measured-only").stdout
    assert measured.startswith("Chosen: batch 16 at 154 MHz")
    assert "predicted ← chosen" in run("select", "--lut", file, "--cap", "3.5").stdout


def test_select_takes_the_stated_probability_and_refuses_one_that_makes_no_sense(tmp_path: Path) -> None:
    file = saved(tmp_path / "t.json", replace(LUT, origin=None, power_std_w=((0.1, 0.1), (0.1, 0.1))))
    clocks = {
        p: json.loads(run("select", "--lut", file, "--cap", "3.1", "--violation-probability", p, "--json").stdout)
        for p in ("0.05", "0.2")
    }
    assert clocks["0.05"]["gpu_frequency_hz"] == 153_600_000
    assert clocks["0.2"]["gpu_frequency_hz"] == 921_600_000
    assert run("select", "--lut", file, "--violation-probability", "0").exit_code == 2


def decision(cap_w: float, job: str = "j1") -> Decided:
    choice = choose(LUT, None, cap_w, measured_only=True)
    why = detail(choice, LUT, None, batch_sizes=LUT.batch_sizes, measured_only=True)
    return Decided(job, "joint", "text", choice.chosen.point, why)


def test_explain_says_why_in_words_and_what_happened_since(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Decisions()
    held.add(
        1.0,
        Decided("j1", "measured", "batch 8 at 154 MHz: 40 s", OperatingPoint(8, 153_600_000)),
        "2026-01-01T00:00:00Z",
    )
    held.add(2.0, decision(3.5), "2026-01-01T00:00:00Z")
    held.add(3.0, Decided(None, "guard-down", "to 77 MHz: too much"), "2026-01-01T00:00:00Z")
    answer = json.loads(json.dumps(list(held)))
    asked = []

    def call(path: Path, method: str, params: dict[str, Any]) -> Any:
        asked.append((method, params))
        return answer

    monkeypatch.setattr(explain_module, "call", call)
    out = run("explain", "j1").stdout
    assert asked == [("explain", {"job": "j1"})]
    assert "Chosen: batch 16 at 154 MHz" in out
    assert "1 point predicted by a model: never chosen unmeasured." in out
    assert "since then, board, guard-down: to 77 MHz: too much" in out
    assert "40 s" not in out
    assert "40 s" in run("explain", "--log").stdout
    plain = json.loads(run("explain", "--json").stdout)
    assert [d["kind"] for d in plain] == ["measured", "joint", "guard-down"]
    assert plain[1]["explanation"][0].startswith("Chosen:")
    assert plain[1]["detail"]["cap_w"] == 3.5
    answer[:] = answer[:1]  # nothing chosen yet: the log is the answer
    assert "40 s" in run("explain").stdout
    answer[:] = []
    assert "nothing was decided yet" in run("explain").stdout


def test_only_the_newest_choice_of_a_job_keeps_its_detail_and_only_few_jobs_do() -> None:
    held = Decisions()
    for n in range(300):
        held.add(float(n), decision(3.5, f"j{n % 20}"), "2026-01-01T00:00:00Z")
    explained = [d["job"] for d in held if "detail" in d]
    assert explained == [f"j{n % 20}" for n in range(292, 300)]
    assert len(list(held)) == 200
    held.add(300.0, decision(3.5, "j19"), "2026-01-01T00:00:00Z")
    assert [d["job"] for d in held if "detail" in d].count("j19") == 1
    assert len(json.dumps(list(held))) < 200_000


def test_forget_takes_a_table_out_of_the_store_and_keeps_a_copy_that_can_be_moved_back(tmp_path: Path) -> None:
    store = LutStore(tmp_path / "lut")
    for _ in range(2):  # the second copy does not take the first one's place
        store.save(BOARD, "resnet18-abc", LUT)
        path = store.path(BOARD, "resnet18-abc")
        answer = json.loads(run("lut", "forget", "resnet18-abc", "--state-dir", tmp_path, "--json").stdout)
        assert answer["forgotten"] == str(path)
        assert not path.exists()
    copies = sorted((tmp_path / "forgotten").rglob("*.json"))
    assert [copy.name for copy in copies] == ["resnet18-abc.1.json", "resnet18-abc.2.json"]
    assert copies[0].parent == tmp_path / "forgotten" / path.parent.relative_to(tmp_path)
    assert "no table" in run("lut", "list", "--state-dir", tmp_path).stdout
    result = run("lut", "forget", "resnet18", "--state-dir", tmp_path)
    assert (result.exit_code, "no table 'resnet18'" in result.stderr) == (2, True)


def test_forget_moves_a_damaged_file_by_its_path_and_asks_which_of_two(tmp_path: Path) -> None:
    store = LutStore(tmp_path / "lut")
    for mode in ("MAXN", "5W"):
        store.save(replace(BOARD, power_mode=mode), "resnet18-abc", replace(LUT, power_mode=mode))
    result = run("lut", "forget", "resnet18-abc", "--state-dir", tmp_path)
    assert (result.exit_code, "2 tables are called" in result.stderr) == (2, True)
    damaged = store.path(BOARD, "resnet18-abc")
    damaged.write_text("{")
    assert run("lut", "forget", damaged, "--state-dir", tmp_path).exit_code == 0
    assert not damaged.exists()
