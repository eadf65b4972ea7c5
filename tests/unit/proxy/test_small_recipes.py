"""The other recipes train for real, and own recipes are found."""

from __future__ import annotations

import numpy as np
import pytest

from traingov_proxy.recipe import RECIPES, Recipe, RecipeError, find
from traingov_proxy.recipes import small

MLPS = ["breast-cancer", "text", "wine"]


@pytest.mark.parametrize("name", MLPS)
def test_a_run_reaches_its_target_and_repeats_exactly(name):
    recipe = find(name)
    train = recipe.with_limit(20_000)
    first = train(64, 1, recipe.target)
    assert first is not None
    assert first == train(64, 1, recipe.target)
    assert first % small.EVALUATE_EVERY == 0


@pytest.mark.parametrize("name", MLPS)
def test_a_run_that_does_not_get_there_is_given_up(name):
    assert find(name).with_limit(512)(64, 1, 0.9999) is None


@pytest.mark.parametrize("name", ["breast-cancer", "wine"])
def test_the_samples_do_not_depend_on_the_batch_sizes_they_are_cut_into(name):
    whole, parts = small.load_task(name).stream(3), small.load_task(name).stream(3)
    inputs, labels = whole(96)
    cut = [parts(n) for n in (32, 1, 63)]
    np.testing.assert_allclose(np.concatenate([x for x, _ in cut]), inputs)
    assert np.concatenate([y for _, y in cut]).tolist() == labels.tolist()


@pytest.mark.parametrize("name", MLPS)
def test_a_task_is_always_the_same_and_harder_than_guessing(name):
    task = small.load_task(name)
    small.load_task.cache_clear()
    np.testing.assert_array_equal(task.test_inputs, small.load_task(name).test_inputs)
    most_common = np.bincount(task.test_labels).max() / len(task.test_labels)
    assert most_common < find(name).target - 0.1


@pytest.mark.slow
def test_a_cnn_learns_the_digits():
    pytest.importorskip("torch", reason="needs PyTorch: pip install 'traingov-proxy[torch]'")
    recipe = find("digits-cnn")
    samples = recipe.with_limit(20_000)(128, 0, 0.9)
    assert samples is not None
    assert recipe.with_limit(20_000)(128, 0, 0.9) == samples
    assert recipe.with_limit(512)(128, 0, 0.999) is None


def test_every_shipped_recipe_is_what_it_is_called():
    for name in RECIPES:
        if name == "digits-cnn":
            continue  # needs PyTorch; the test above has it
        assert find(name).name == name


def test_ones_own_recipe_is_found_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "my_recipes_of_a_test.py").write_text(
        "from traingov_proxy import Recipe\n"
        "def limit(n):\n    return lambda batch_size, seed, target: float(n)\n"
        "MINE = Recipe('mine', 'w', 'd', (4, 8), 0.5, 'sqrt', 7, limit)\n"
        "OTHER = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    mine = find("my_recipes_of_a_test:MINE")
    assert isinstance(mine, Recipe)
    assert mine.with_limit(7)(4, 0, 0.5) == 7.0
    with pytest.raises(RecipeError, match="is a int, not a"):
        find("my_recipes_of_a_test:OTHER")
    with pytest.raises(RecipeError, match="has no ABSENT"):
        find("my_recipes_of_a_test:ABSENT")


@pytest.mark.parametrize("name", ["no_such_module:X", "digits:", ":x", "imagenet"])
def test_a_recipe_that_is_not_there_is_one_line(name):
    with pytest.raises(RecipeError, match="recipe") as caught:
        find(name)
    assert "\n" not in str(caught.value)
