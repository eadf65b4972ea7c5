"""What the framework helpers decide without any framework: order, learning rates, plan, lengths, memory errors."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traingov_client
from traingov_client.frameworks.inputs import Lengths, mean_length, samples_in
from traingov_client.frameworks.memory import is_out_of_memory
from traingov_client.frameworks.order import Batches, share, usable
from traingov_client.frameworks.plan import Plan
from traingov_client.frameworks.rates import LearningRates, rule_for

PACKAGE = Path(traingov_client.__file__).parent


@given(
    total=st.integers(0, 300),
    world=st.integers(1, 4),
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), min_size=1, max_size=20),
)
def test_however_the_batch_size_changes_each_sample_is_trained_once(
    total: int, world: int, sizes: list[tuple[int, int]]
) -> None:
    order = list(range(total))
    trained: list[int] = []
    position = 0
    for size, steps in [*sizes, (7, 10**6)]:
        loaders = [iter(Batches(order, position, size, rank, world, False)) for rank in range(world)]
        for _ in range(steps):
            batches = [next(loader, None) for loader in loaders]
            if batches[0] is None:
                assert batches == [None] * world, "every process makes the same number of steps"
                break
            assert all(batches), "no process is without a sample"
            lengths = [len(batch) for batch in batches if batch is not None]
            assert max(lengths) - min(lengths) <= 1
            assert max(lengths) <= size
            trained += [row for batch in batches if batch is not None for row in batch]
            position += sum(lengths)
    assert trained == order[: len(trained)]
    assert total - len(trained) < world


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 4), st.booleans())
def test_the_length_of_a_loader_and_what_it_trains_are_known_before(
    total: int, size: int, world: int, whole: bool
) -> None:
    batches = Batches(list(range(total)), 0, size, 0, world, whole)
    taken = [share(0, total, size, 0, world, whole)]
    while taken[-1] is not None:
        done = sum(part.taken for part in taken if part is not None)
        taken.append(share(done, total, size, 0, world, whole))
    assert len(list(batches)) == len(batches) == len(taken) - 1
    assert usable(total, size, world, whole) == sum(part.taken for part in taken if part is not None)


def test_whole_batches_leave_out_what_does_not_fill_one() -> None:
    assert list(Batches(list(range(10)), 0, 4, 0, 1, True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(Batches(list(range(10)), 3, 4, 0, 1, False)) == [[3, 4, 5, 6], [7, 8, 9]]


class Optimizer:
    def __init__(self, *rates: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"lr": rate, "initial_lr": rate} for rate in rates]


class SGD(Optimizer):
    pass


def test_rates_follow_the_rule_and_come_back() -> None:
    optimizer, scheduler = Optimizer(0.1, 0.01), SimpleNamespace(base_lrs=[0.1, 0.01], _last_lr=[0.1, 0.01])
    rates = LearningRates([optimizer], [scheduler], 64, "sqrt")
    rates.follow(16)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.005])
    assert scheduler.base_lrs == pytest.approx([0.05, 0.005])
    rates.follow(16)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05), "once, not twice"
    optimizer.param_groups[0]["lr"] /= 10  # a scheduler's doing
    rates.follow(64)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
    assert scheduler.base_lrs == pytest.approx([0.1, 0.01])


@pytest.mark.parametrize(("rule", "expected"), [("linear", 0.025), ("sqrt", 0.05), ("none", 0.1)])
def test_each_rule(rule: str, expected: float) -> None:
    optimizer = SGD(0.1)
    LearningRates([optimizer], [], 64, rule).follow(16)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(expected)


def test_sgd_is_scaled_linearly_and_all_others_by_the_root() -> None:
    assert rule_for(SGD(1.0)) == "linear"
    assert rule_for(Optimizer(1.0)) == "sqrt"


def test_a_rate_that_is_loaded_from_a_checkpoint_is_not_scaled_twice() -> None:
    saved = Optimizer(0.1)
    LearningRates([saved], [], 64, "sqrt").follow(16)
    fresh = Optimizer(0.1)
    rates = LearningRates([fresh], [], 64, "sqrt")
    rates.follow(64)
    fresh.param_groups = [dict(group) for group in saved.param_groups]  # load_state_dict
    rates.follow(64)
    assert fresh.param_groups[0]["lr"] == pytest.approx(0.1)


def test_schedulers_inside_schedulers_are_scaled_too() -> None:
    inner = SimpleNamespace(base_lrs=[0.4])
    LearningRates([], [SimpleNamespace(_schedulers=[inner])], 4, "linear").follow(1)
    assert inner.base_lrs == [pytest.approx(0.1)]


def test_a_group_that_is_added_later_is_scaled_when_it_is_seen() -> None:
    optimizer = Optimizer(0.1)
    rates = LearningRates([optimizer], [], 64, "sqrt")
    rates.follow(16)
    optimizer.param_groups.append({"lr": 1.0})
    rates.follow(16)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.5])


def test_an_unknown_rule_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="rule must be one of sqrt, linear, none, not 'log'"):
        LearningRates([], [], 64, "log")


def plan(**more: Any) -> Plan:
    fields: dict[str, Any] = {
        "batch_sizes": [32, 8, 16], "batch_size": None, "accumulate": 1, "effective_batch": None, "world": 1,
        "epochs": None, "every": None,
    }  # fmt: skip
    return Plan(**{**fields, **more})


def test_an_effective_batch_is_kept_at_every_batch_size() -> None:
    kept = plan(effective_batch=64)
    made = {}
    for size in (8, 16, 32):
        kept.batch_size = size
        made[size] = kept.accumulate
    assert made == {8: 8, 16: 4, 32: 2}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"effective_batch": 40}, "effective_batch 40 is not a multiple of batch size 16, 32; leave those out"),
        ({"effective_batch": 32, "world": 2}, "is not a multiple of batch size 32 times 2 processes"),
        ({"effective_batch": 32, "accumulate": 2}, "give accumulate or effective_batch, not both"),
        ({"batch_size": 4}, r"batch_size must be one of batch_sizes \[8, 16, 32\], not 4"),
        ({"every": 0}, "every must be a whole number from 1"),
        ({"accumulate": 1.5}, "accumulate must be a whole number from 1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_in_one_line(more: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plan(**more)


MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])


def test_the_mean_length_leaves_padding_out() -> None:
    assert mean_length({"attention_mask": MASK}) == 2.0
    assert mean_length({"input_ids": MASK}) is None
    assert mean_length([MASK]) is None
    assert mean_length({"attention_mask": np.zeros((0, 4))}) is None


def test_a_mask_on_a_gpu_is_looked_at_seldom() -> None:
    class OnGpu:
        device = SimpleNamespace(type="cuda")
        shape = (2, 4)

        def sum(self) -> int:
            return 4

    lengths = Lengths(first=2, then_every=4)
    assert [lengths.of({"attention_mask": OnGpu()}) for _ in range(8)] == [2.0, 2.0, None, 2.0, None, None, None, 2.0]


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (np.zeros((5, 2)), 5),
        ([np.zeros(3), np.zeros(3)], 3),
        ({"n": np.float64(1), "x": np.zeros((4, 1))}, 4),
        (["text", 1], None),
        ({}, None),
    ],
)
def test_samples_are_counted_by_the_first_tensor(batch: Any, samples: int | None) -> None:
    assert samples_in(batch) == samples


class OutOfMemoryError(RuntimeError):
    pass


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("x"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_which_errors_say_that_memory_is_short(error: BaseException, is_one: bool) -> None:
    assert is_out_of_memory(error) is is_one


def test_the_client_and_its_helpers_parse_on_python_3_6() -> None:
    for file in PACKAGE.rglob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 6))


def test_the_client_loads_no_helper_and_the_plain_parts_load_no_framework() -> None:
    code = (
        "import sys, traingov_client; a = [m for m in sys.modules if 'frameworks' in m]; "
        "import traingov_client.frameworks.torch_loop; "
        "print(a, [m for m in ('torch', 'transformers', 'lightning', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


def test_a_step_of_several_micro_batches_counts_them_all(tmp_path: Path) -> None:
    job = traingov_client.register("w", [8], socket=str(tmp_path / "none"), timeout_s=0.01)
    job.step(micro_batches=4)
    job.step(20, 5.0, 3)
    assert job.samples_done == 4 * 8 + 20
    assert math.isclose(job.scale_lr(1.0), 1.0)
    job.end()
