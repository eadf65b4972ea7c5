"""What the service keeps of sweeps, and which wishes it refuses."""

import pytest

from traingov.sessions.handler import Refused
from traingov.sweeps import SweepStore, request
from traingov_policies.sweep import SweepRow
from traingov_policies.values import Board

BOARD = Board("agx orin", "R36.4", "MAXN", (510, 714, 1300))
ROWS = (SweepRow("w", "bert", 4, None, None, None, None, 9.5, 100.25, None),)


def asked(params=None, jobs=("j1",), *, board=BOARD, capped=False, done=None):
    return request(params or {}, now_s=5.0, jobs=jobs, board=board, capped=capped, done=done or {})


def test_what_was_measured_is_there_after_a_restart(tmp_path):
    SweepStore(tmp_path).save(BOARD, "w", ROWS)
    again = SweepStore(tmp_path)
    assert again.get(BOARD, "w") == ROWS
    assert again.get(BOARD, "other") == ()
    assert again.get(Board("agx orin", "R36.4", "30W", ()), "w") == ()


def test_a_damaged_sweep_is_set_aside_and_measured_anew(tmp_path):
    store = SweepStore(tmp_path)
    store.save(BOARD, "w", ROWS)
    path = store.path(BOARD, "w")
    path.write_text("not a sweep\n", encoding="utf-8")
    assert SweepStore(tmp_path).get(BOARD, "w") == ()
    assert not path.exists()
    assert list(path.parent.glob("*.damaged-*"))


def test_the_only_job_need_not_be_named_and_its_rows_are_taken_up():
    event = asked({"steps": 40}, done={"j1": ROWS})
    assert (event.job, event.clocks_hz, event.steps, event.done) == ("j1", BOARD.gpu_frequencies_hz, 40, ROWS)


def test_a_fresh_sweep_leaves_out_what_was_measured_before():
    assert asked({"fresh": True}, done={"j1": ROWS}).done == ()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"jobs": ()}, "start the training first"),
        ({"jobs": ("a", "b")}, "name one of a, b"),
        ({"params": {"job": "a"}, "jobs": ("a", "b")}, "needs one alone"),
        ({"params": {"job": "x"}}, "no job 'x'"),
        ({"capped": True}, "clear it first"),
        ({"params": {"clocks_hz": [600]}}, "600 is not in the board's table"),
        ({"board": Board("b", "r", "m", ())}, "no clock table"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_with_what_to_do(arguments, what):
    with pytest.raises(Refused, match=what):
        asked(**arguments)
