"""The shipped recipe trains for real, and the recorded vector is what it gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_policies.relation import RelationVector
from traingov_proxy.recipe import RECIPES, find
from traingov_proxy.recipes import digits

RECORDED = Path(__file__).parents[3] / "etc" / "relations" / "digits-mlp.json"


def recorded() -> RelationVector:
    return RelationVector.from_json(json.loads(RECORDED.read_text()))


def test_the_recorded_vector_is_of_the_recipe():
    relation, recipe = recorded(), find("digits")
    assert relation.workload == recipe.workload
    assert relation.batch_sizes == recipe.batch_sizes == digits.BATCH_SIZES
    assert relation.target == recipe.target
    assert relation.dataset == recipe.dataset
    assert relation.learning_rate_rule == recipe.learning_rate_rule
    assert all(len(runs) == 3 for runs in relation.samples_to_accuracy)
    again = RelationVector.from_runs(
        relation.workload, dict(zip(relation.batch_sizes, relation.samples_to_accuracy, strict=True))
    )
    assert again.relative_samples == relation.relative_samples


def test_training_again_finds_the_recorded_samples_to_accuracy():
    relation = recorded()
    row = relation.samples_to_accuracy[relation.batch_sizes.index(32)]
    for seed in (0, 2):
        # On one build it is the same number. Another BLAS rounds otherwise, and may cross the target an evaluation
        # or two earlier or later: 15 % is about two.
        assert digits.train(32, seed, relation.target) == pytest.approx(row[seed], rel=0.15)


def test_a_run_repeats_exactly():
    assert digits.train(64, 5, 0.9) == digits.train(64, 5, 0.9)


def test_seeds_differ():
    assert len({digits.train(16, seed, 0.97) for seed in range(6)}) > 1


def test_training_is_what_reaches_the_target():
    task = digits.load_task("proxy")
    untrained = digits.initial_network(task, 0).accuracy(task.test_inputs, task.test_labels)
    assert untrained < 0.5
    few, many = digits.train(32, 0, 0.6), digits.train(32, 0, 0.97)
    assert few is not None
    assert many is not None
    assert digits.EVALUATE_EVERY <= few < many < digits.MAX_SAMPLES


def test_a_network_that_does_not_learn_misses_the_target():
    assert digits.train(32, 0, 0.9, max_samples=5_000, learning_rate=0.0) is None


def test_a_target_out_of_reach_is_missed_not_counted():
    assert digits.train(128, 0, 1.1, max_samples=2_000) is None


@pytest.mark.parametrize("name", ["proxy", "target"])
def test_training_and_test_images_are_different_images(name):
    task = digits.load_task(name)
    unshifted = task.train_inputs[4]  # the middle one of the nine shifts
    test = task.test_inputs.reshape(9, -1, 64)[4]
    train_rows = {row.tobytes() for row in unshifted}
    assert len(train_rows) == len(unshifted)
    assert not train_rows & {row.tobytes() for row in test}
    assert len(test) == pytest.approx(0.3 * (len(test) + len(unshifted)), abs=5)


def test_proxy_and_target_share_no_image_and_no_digit():
    assert not set(digits.CLASSES["proxy"]) & set(digits.CLASSES["target"])
    images = [
        {row.tobytes() for row in digits.load_task(name).train_inputs[4]}
        | {row.tobytes() for row in digits.load_task(name).test_inputs.reshape(9, -1, 64)[4]}
        for name in ("proxy", "target")
    ]
    assert not images[0] & images[1]
    assert len(images[0]) + len(images[1]) == 1797


def test_a_shift_moves_an_image_by_one_pixel():
    task = digits.load_task("proxy")
    shifts = task.train_inputs.reshape(9, -1, 8, 8)
    middle = shifts[4]
    np.testing.assert_array_equal(shifts[5][:, :, :-1], middle[:, :, 1:])  # window one pixel to the right
    np.testing.assert_array_equal(shifts[1][:, 1:, :], middle[:, :-1, :])  # window one pixel up
    assert not shifts[5][:, :, -1].any()


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(1, 300), min_size=1, max_size=12), seed=st.integers(0, 2**32))
def test_the_samples_do_not_depend_on_the_batch_sizes_they_are_cut_into(cuts, seed):
    task = digits.load_task("proxy")
    cut, whole = digits.SampleStream(task, seed), digits.SampleStream(task, seed)
    parts = [cut.next(n) for n in cuts]
    inputs, labels = whole.next(sum(cuts))
    np.testing.assert_array_equal(np.concatenate([p[0] for p in parts]), inputs)
    np.testing.assert_array_equal(np.concatenate([p[1] for p in parts]), labels)


def test_an_epoch_has_every_image_once():
    task = digits.load_task("proxy")
    stream, images = digits.SampleStream(task, 1), len(task.train_labels)
    for _ in range(2):
        _, labels = stream.next(images)
        np.testing.assert_array_equal(np.bincount(labels), np.bincount(task.train_labels))


def test_every_batch_size_of_a_seed_starts_from_the_same_weights():
    one = digits.initial_network(digits.load_task("proxy"), 4).parameters
    other = digits.initial_network(digits.load_task("target"), 4).parameters
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert not np.array_equal(one[0], digits.initial_network(digits.load_task("proxy"), 5).parameters[0])


def test_evaluations_fall_on_the_same_sample_counts_for_every_batch_size():
    assert all(digits.EVALUATE_EVERY % b == 0 for b in digits.BATCH_SIZES)


def test_unknown_names_say_what_there_is():
    with pytest.raises(ValueError, match="proxy, target"):
        digits.load_task("mnist")
    with pytest.raises(ValueError, match=", ".join(sorted(RECIPES))):
        find("resnet18")
