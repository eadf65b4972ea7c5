"""Trees fitted to made-up sweeps whose right answer is known."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.fitting import dataset, grid_search, to_tree
from traingov_policies.fitting.data import folds
from traingov_policies.fitting.nodes import Node, settled
from traingov_policies.fitting.regret import RegretSettings, fit_regret
from traingov_policies.sweep import Curve
from traingov_policies.tree import Tree

CLOCKS = (510_000_000, 714_000_000, 1_020_000_000)


def curve(name, best, *, layers=12, length=40.0, utilization=60.0, kind="bert", step=0.05):
    cost = {hz: 100.0 * (1 + step * abs(i - CLOCKS.index(best))) for i, hz in enumerate(CLOCKS)}
    features = {"layers": layers, "hidden_size": 768, "seq_len_avg": length, "gpu_utilization": utilization}
    return Curve(name, kind, features, cost, 120.0)


def separable():
    """Shallow models are best at 510 MHz, deep ones at 714 MHz, whatever else."""
    return [
        curve(f"m{layers}/{task}", CLOCKS[layers > 7], layers=layers, length=length)
        for layers in (4, 6, 8, 12, 24)
        for task, length in (("a", 20.0), ("b", 40.0), ("c", 60.0))
    ]


@pytest.mark.parametrize("cost_sensitive", [False, True])
@pytest.mark.parametrize("kind", ["loo", "grouped"])
def test_a_rule_that_is_in_the_data_is_found_and_holds_on_held_out_workloads(cost_sensitive, kind):
    data = dataset(separable())
    fitted = grid_search(data, kind, cost_sensitive=cost_sensitive)
    tree = to_tree(fitted.node, data, "t", "agx-orin")
    assert fitted.training.accuracy == 1.0
    assert tree.apply({"layers": 5}).gpu_frequency_hz == CLOCKS[0]
    assert tree.apply({"layers": 30}).gpu_frequency_hz == CLOCKS[1]
    assert fitted.score.regret_mean <= fitted.majority.regret_mean
    assert sum(sum(row.values()) for row in fitted.confusion.values()) == len(data)


def test_regret_counts_what_a_wrong_clock_costs_not_how_many_labels_are_hit():
    # Most workloads are best at 510 by a hair; a few lose much there, and no feature tells them apart.
    cheap = [curve(f"a{i}/t", CLOCKS[0], step=0.001) for i in range(5)]
    dear = [curve(f"b{i}/t", CLOCKS[2], step=0.2) for i in range(3)]
    data = dataset([*cheap, *dear])
    by_label, by_regret = (grid_search(data, cost_sensitive=c) for c in (False, True))
    assert data.clocks_hz[by_label.node.predict(data.x)[0]] == CLOCKS[0]
    assert data.clocks_hz[by_regret.node.predict(data.x)[0]] == CLOCKS[2]
    assert by_regret.score.regret_mean < by_label.score.regret_mean
    assert by_regret.score.accuracy < by_label.score.accuracy


def test_a_tree_on_the_model_type_survives_the_file():
    curves = [
        curve(f"{kind}{i}/t", best, kind=kind)
        for kind, best in (("bert", CLOCKS[0]), ("pythia", CLOCKS[2]))
        for i in range(4)
    ]
    data = dataset(curves)
    tree = to_tree(grid_search(data, cost_sensitive=True).node, data, "t", "agx-orin")
    again = Tree.from_json(tree.to_json())
    assert again == tree
    assert again.apply({"model_type": "bert"}).gpu_frequency_hz == CLOCKS[0]
    assert again.apply({"model_type": "pythia"}).gpu_frequency_hz == CLOCKS[2]
    assert again.apply({"model_type": "pythia"}).path == ("model_type is not bert",)


def test_the_branch_for_a_missing_feature_is_the_cheaper_one_for_all_that_reached_it():
    x = np.array([[1.0], [2.0], [3.0], [10.0]])
    cost = np.array([[0.0, 0.01], [0.0, 0.01], [0.0, 0.01], [0.5, 0.0]])
    node = settled(Node(0, 0, 5.0, Node(0), Node(1)), x, cost)
    assert not node.missing_le  # three lose 1 % at the second clock, one would lose 50 % at the first
    assert node.predict(np.array([[np.nan]]))[0] == 1


def test_equal_leaves_are_joined():
    x, cost = np.array([[1.0], [9.0]]), np.zeros((2, 2))
    assert settled(Node(0, 0, 5.0, Node(1), Node(1)), x, cost) == Node(1)


def test_a_workload_without_a_feature_can_be_fitted_to():
    curves = separable()
    curves[0] = curve("m4/a", CLOCKS[0], layers=None)
    data = dataset(curves)
    for cost_sensitive in (False, True):
        assert grid_search(data, cost_sensitive=cost_sensitive).training.regret_mean < 0.01


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_tree_of_two_questions_costs_less_than_the_one_found(data):
    n = data.draw(st.integers(3, 7))
    x = np.array(data.draw(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=n, max_size=n)))
    cost = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=n, max_size=n)), dtype=float
    )
    x = x.astype(float)
    for depth in (1, 2, 3):
        node = fit_regret(x, cost, RegretSettings(depth, 1, 0.0))
        found = cost[np.arange(n), node.predict(x)].sum()
        assert found == pytest.approx(cheapest(x, cost, depth))


def cheapest(x, cost, depth):
    """By trying everything, written without the code under test."""
    best = cost.sum(axis=0).min() if len(cost) else 0.0
    if depth:
        for column, threshold in itertools.product(range(x.shape[1]), (0.5, 1.5, 2.5)):
            left = x[:, column] <= threshold
            best = min(best, cheapest(x[left], cost[left], depth - 1) + cheapest(x[~left], cost[~left], depth - 1))
    return best


def test_grouped_folds_keep_a_model_out_of_its_own_training():
    data = dataset(separable())
    for test in folds(data, "grouped"):
        held = {data.groups[i] for i in test}
        assert len(held) == 1
        assert all(data.groups[i] not in held for i in range(len(data)) if i not in test)


def test_nested_scores_come_from_settings_that_did_not_see_the_held_out_workload():
    data = dataset(separable()[:6])
    fitted = grid_search(data, "loo", cost_sensitive=True, nested=True)
    assert fitted.nested is not None
    assert fitted.nested.accuracy <= 1.0
    assert grid_search(data, "grouped", cost_sensitive=True).nested is None


@pytest.mark.parametrize(
    ("curves", "what"),
    [
        ([curve("a", CLOCKS[0])] * 2, "too few"),
        (
            [curve("a", CLOCKS[0]), curve("b", CLOCKS[0]), Curve("c", "bert", {}, {1: 1.0, 2: 1.0}, None)],
            "fewer than 2 clocks",
        ),
    ],
)
def test_data_that_no_tree_can_be_fitted_to_is_refused(curves, what):
    with pytest.raises(ValueError, match=what):
        dataset(curves)
