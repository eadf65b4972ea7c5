"""An energy sweep from end to end: command line, socket, service, virtual board."""

import json

from rig import Lab, traingov, training, wait_for

from traingov_policies.sweep import curves, from_csv


def test_a_sweep_of_a_running_job_is_measured_kept_and_fitted_from(lab: Lab, tmp_path):
    board = lab.board("agx-orin", "a", 3)
    before = board.bounds_hz()
    out = tmp_path / "s.csv"
    service = lab.service(board, "a", {"policy": "observe"})
    features = {"model_type": "bert", "layers": 12, "hidden_size": 768, "seq_len_avg": 30.4}
    ask = ("--socket", str(service.socket), "--json")
    wish = ("profile", "--energy", "--clocks", "510,714", "--duration", "3")
    with training(service, [32], workload="text-classifier", features=features):
        done = traingov(*wish, "--out", str(out), *ask)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["sweep"]["state"] == "finished"
        again = json.loads(traingov(*wish, *ask).stdout)
        assert again["rows"] == answer["rows"]  # nothing is measured twice
    rows = from_csv(out.read_text(encoding="utf-8"))
    assert [row.gpu_frequency_hz for row in rows] == [None, 510_000_000, 714_000_000]
    (curve,) = curves(rows)
    assert curve.saving(714_000_000) is not None
    assert all(row.input_energy_j > row.compute_energy_j > 0 for row in rows)
    assert all(0 < row.gpu_utilization <= 100 for row in rows)
    kept = list(service.state_dir.glob("sweeps/*/*/*/*.csv"))
    assert len(kept) == 1
    assert kept[0].read_text(encoding="utf-8") == out.read_text(encoding="utf-8")
    wait_for(lambda: board.bounds_hz() == before, 5, "the bounds are given back")
