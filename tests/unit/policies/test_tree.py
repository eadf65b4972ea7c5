"""Algorithm 1 and FFG, as the energy paper prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traingov_policies.tree import Tree, on_board

TREES = Path(__file__).parents[3] / "etc" / "trees"
ORIN_R35 = [114750000, 216750000, 318750000, 420750000, 522750000, 624750000, 726750000, 828750000, 930750000,
            1032750000, 1134750000, 1236750000, 1300500000]  # fmt: skip


def tree(name: str) -> Tree:
    return Tree.from_json(json.loads((TREES / name).read_text()))


@pytest.mark.parametrize(
    ("layers", "length", "utilization", "mhz"),
    [
        (4, 32.5, 50, 510), (7, 32.6, 50, 612), (8, 53.0, 50, 714), (24, 53.1, 50, 816),
        (4, 20, 22.0, 1020), (24, 80, 10, 1020), (24, 80, 22.1, 816),
    ],
)  # fmt: skip
def test_algorithm_1_on_both_sides_of_each_threshold(layers: int, length: float, utilization: float, mhz: int) -> None:
    features = {"layers": layers, "seq_len_avg": length, "gpu_utilization": utilization}
    answer = tree("algorithm-1.json").apply(features)
    assert answer.gpu_frequency_hz == mhz * 1_000_000
    assert len(answer.path) == (1 if utilization <= 22 else 3)


def test_a_missing_feature_follows_the_stated_branch_and_the_path_says_so() -> None:
    answer = tree("algorithm-1.json").apply({"layers": 12, "seq_len_avg": None})
    assert answer.gpu_frequency_hz == 714_000_000
    assert sum("unknown" in step for step in answer.path) == 2


def test_ffg_is_always_714_mhz() -> None:
    assert tree("ffg.json").apply({}).gpu_frequency_hz == 714_000_000


def test_trees_survive_a_round_trip_and_can_be_read_by_eye() -> None:
    algorithm = tree("algorithm-1.json")
    assert Tree.from_json(algorithm.to_json()) == algorithm
    assert "510 MHz" in "\n".join(algorithm.rules())


def test_on_another_clock_table_the_nearest_step_by_ratio_is_taken() -> None:
    assert on_board(714_000_000, 1_300_500_000, [510_000_000, 714_000_000]) == 714_000_000
    assert on_board(714_000_000, 1_300_500_000, ORIN_R35) == 726_750_000
    assert on_board(714_000_000, 1_300_500_000, [76_800_000 * k for k in range(1, 13)]) == 537_600_000
    with pytest.raises(ValueError, match="no clock table"):
        on_board(714_000_000, 1_300_500_000, [])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": "traingov.tree/9"}, "schema"),
        ({"tree": {"feature": "colour", "threshold": 1, "le": {}, "gt": {}}}, "tree.feature"),
        ({"tree": {"feature": "layers", "threshold": 7, "le": {"gpu_frequency_hz": -1}, "gt": {}}}, "tree.le"),
    ],
)
def test_a_wrong_tree_names_the_node(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Tree.from_json({**tree("ffg.json").to_json(), **change})
