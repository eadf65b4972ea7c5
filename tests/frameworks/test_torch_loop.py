"""The PyTorch loop with the real torch: real networks, real loaders, a scripted job."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install -r tests/frameworks.txt")
from scripted import Registrar  # noqa: E402
from torch import nn  # noqa: E402

from traingov_client.frameworks.torch_loop import GovernedLoop  # noqa: E402

ROWS = 103


class Numbered(torch.utils.data.Dataset):  # type: ignore[misc]
    """Each sample carries its number."""

    def __init__(self, rows: int = ROWS) -> None:
        draw = torch.Generator().manual_seed(1)
        self.inputs, self.targets = torch.randn(rows, 4, generator=draw), torch.randn(rows, 1, generator=draw)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, row: int) -> tuple[int, Any, Any]:
        return row, self.inputs[row], self.targets[row]


class Bench:
    """A model, an optimizer, a loop, and what was trained."""

    def __init__(
        self, sizes: list[int], model: Any = None, optimizer: str = "Adam", lr: float = 0.1, **more: Any
    ) -> None:
        self.model = model or nn.Linear(4, 1)
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), lr=lr)
        self.loop = GovernedLoop(
            more.pop("dataset", None) or Numbered(), self.model, self.optimizer, "w", sizes, **more
        )
        self.rows: list[list[int]] = [[]]
        self.fails = lambda size: False

    def epoch(self, stop_after: int | None = None) -> list[int]:
        """Train what is left of an epoch; its rows as they were trained."""
        rows: list[int] = []
        for number, (index, inputs, targets) in enumerate(self.loop):
            with self.loop.step():
                predicted = self.model(inputs)
                if self.fails(len(index)):
                    raise torch.OutOfMemoryError("CUDA out of memory.")
                self.loop.backward(nn.functional.mse_loss(predicted, targets))
                rows += index.tolist()
            if number + 1 == stop_after:
                break
        return rows

    @property
    def lr(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_changes_in_mid_epoch_repeats_and_skips_no_sample(registrar: Registrar, workers: int) -> None:
    registrar.advice = {1: 4, 3: 16}
    bench = Bench([4, 8, 16], every=2, epochs=2, loader={"num_workers": workers})
    with bench.loop:
        orders = [bench.epoch() for _ in bench.loop.epochs()]
    assert [sorted(order) for order in orders] == [list(range(ROWS))] * 2
    assert orders[0] != orders[1], "each epoch has an order of its own"
    assert registrar.job.batch_of_step[:8] == [16, 16, 4, 4, 4, 4, 16, 16]
    assert sum(n for n, _, _ in registrar.job.steps) == 2 * ROWS == bench.loop.samples_done
    assert registrar.job.fields["samples_total"] == 2 * ROWS
    assert registrar.job.ended


def test_without_every_only_the_end_of_an_epoch_is_a_safe_point(registrar: Registrar) -> None:
    registrar.advice = {1: 4}
    bench = Bench([4, 16], epochs=2)
    with bench.loop:
        for _ in bench.loop.epochs():
            bench.epoch()
    assert registrar.job.safe_points == 2
    assert registrar.job.batch_of_step == [16] * 7 + [4] * 26


@pytest.mark.parametrize(
    ("optimizer", "more", "expected"),
    [("Adam", {}, 0.05), ("SGD", {}, 0.025), ("Adam", {"rule": "linear"}, 0.025), ("SGD", {"rule": "none"}, 0.1)],
)
def test_the_learning_rate_follows_the_batch_size_by_the_stated_rule(
    registrar: Registrar, optimizer: str, more: dict[str, str], expected: float
) -> None:
    registrar.advice = {1: 4}
    bench = Bench([4, 16], optimizer=optimizer, **more)
    with bench.loop:
        assert bench.lr == pytest.approx(0.1)
        bench.epoch()
        assert bench.lr == pytest.approx(expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 1 / (1 + n)),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    ],
)
def test_a_schedule_goes_on_at_the_scaled_rate(registrar: Registrar, make: Any) -> None:
    registrar.advice = {1: 4}
    alone = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    expected = make(alone)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = make(optimizer)
    loop = GovernedLoop(Numbered(32), model, optimizer, "w", [4, 16], schedulers=[scheduler], every=1)
    with loop:
        for number, (_, inputs, targets) in enumerate(loop):
            factor = 1.0 if number == 0 else 0.25
            assert optimizer.param_groups[0]["lr"] == pytest.approx(alone.param_groups[0]["lr"] * factor)
            with loop.step():
                loop.backward(nn.functional.mse_loss(model(inputs), targets))
            alone.step()
            scheduler.step()
            expected.step()
    assert number == 4


def test_a_batch_that_does_not_fit_is_told_and_trained_in_smaller_ones_with_the_state_intact(
    registrar: Registrar,
) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    before = copy.deepcopy(model.state_dict())
    bench = Bench([4, 8, 16, 32], model)
    states = []

    def fails(size: int) -> bool:
        if size > 8:
            return True
        states.append({name: value.clone() for name, value in model.state_dict().items()})
        return False

    bench.fails = fails
    with bench.loop:
        order = bench.epoch()
        assert registrar.job.failed == [32, 16]
        assert bench.lr == pytest.approx(0.1 * (8 / 32) ** 0.5)
    assert sorted(order) == list(range(ROWS))
    for name, value in before.items():
        if "running" not in name and "num_batches" not in name:  # those hold the present forward pass already
            assert torch.equal(states[0][name], value)
    assert int(states[0]["1.num_batches_tracked"]) == 1, "the failed passes left no trace"
    assert [n for n, _, _ in registrar.job.steps] == [8] * 12 + [7]


def test_where_no_smaller_batch_is_left_the_error_goes_on(registrar: Registrar) -> None:
    bench = Bench([16])
    bench.fails = lambda size: True
    with pytest.raises(torch.OutOfMemoryError), bench.loop:
        bench.epoch()
    assert registrar.job.failed == [16]
    assert registrar.job.ended


def test_an_error_of_the_script_is_its_own(registrar: Registrar) -> None:
    bench = Bench([8, 16])
    with bench.loop, pytest.raises(KeyError), bench.loop.step():
        raise KeyError("mine")
    assert registrar.job.failed == []


def test_out_of_memory_in_the_middle_of_an_accumulated_step_trains_all_its_samples_again(registrar: Registrar) -> None:
    bench = Bench([4, 8], accumulate=3)
    calls: list[int] = []
    bench.fails = lambda size: size == 8 and (calls.append(size) or len(calls) == 2)
    with bench.loop:
        order = bench.epoch()
    assert sorted(order[8:]) == list(range(ROWS)), "the first batch of the failed step was trained for nothing"
    assert registrar.job.steps[0] == (12, None, 3)
    assert sum(n for n, _, _ in registrar.job.steps) == ROWS


@pytest.mark.parametrize("size", [4, 8, 16])
def test_an_effective_batch_gives_the_weights_of_one_large_batch_at_every_batch_size(
    registrar: Registrar, size: int
) -> None:
    torch.manual_seed(3)
    start = nn.Linear(4, 1)
    large = Bench([16], copy.deepcopy(start), "SGD")
    small = Bench([4, 8, 16], copy.deepcopy(start), "SGD", batch_size=size, effective_batch=16)
    for bench in (large, small):
        with bench.loop:
            bench.epoch()
    assert registrar.job.steps[0] == (16, None, 16 // size)
    assert small.lr == large.lr == 0.1
    assert registrar.job.fields["learning_rate_rule"] == "none"
    for one, other in zip(large.model.parameters(), small.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_accumulated_steps_are_reported_whole_and_the_rest_of_an_epoch_too(registrar: Registrar) -> None:
    bench = Bench([8], accumulate=4)
    with bench.loop:
        bench.epoch()
    assert registrar.job.steps == [(32, None, 4)] * 3 + [(7, None, 1)]


@pytest.mark.parametrize("optimizer_first", [True, False])
def test_a_checkpoint_in_mid_epoch_goes_on_with_the_samples_left_and_the_right_rate(
    registrar: Registrar, optimizer_first: bool
) -> None:
    registrar.advice = {1: 4}
    first = Bench([4, 16], every=1, epochs=1, seed=7)
    with first.loop:
        before = first.epoch(stop_after=5)
    saved = copy.deepcopy((first.loop.state_dict(), first.optimizer.state_dict()))
    assert saved[0]["position"] == len(before) == 16 + 4 * 4
    registrar.advice = {}
    second = Bench([4, 16], every=1, epochs=1)
    if optimizer_first:
        second.optimizer.load_state_dict(saved[1])
    second.loop.load_state_dict(saved[0])
    with second.loop:
        if not optimizer_first:
            second.optimizer.load_state_dict(saved[1])
        assert registrar.job.batch_size == 4
        assert registrar.job.fields["samples_done"] == 32
        assert registrar.job.fields["resume"] is True
        after = second.epoch()
        assert second.lr == pytest.approx(0.05)
    assert sorted(before + after) == list(range(ROWS))
    assert second.loop.samples_done == ROWS
    assert list(second.loop.epochs()) == []


def test_a_break_keeps_the_place(registrar: Registrar) -> None:
    bench = Bench([8])
    with bench.loop:
        rows = bench.epoch(stop_after=3)
        rows += bench.epoch()
    assert sorted(rows) == list(range(ROWS))
    assert bench.loop.epoch == 1


def test_features_and_signature_come_from_the_model(registrar: Registrar) -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 3)
    bench = Bench([8], encoder, "AdamW")
    with bench.loop:
        pass
    assert registrar.job.fields["features"] == {"layers": 3, "hidden_size": 16}
    parameters = sum(p.numel() for p in encoder.parameters())
    assert registrar.job.fields["signature"] == {
        "architecture": f"TransformerEncoder-{parameters}p", "precision": "float32", "optimizer": "adamw",
    }  # fmt: skip


def test_the_mean_length_of_an_optimizer_step_is_that_of_its_masks(registrar: Registrar) -> None:
    class Texts(Numbered):
        def __getitem__(self, row: int) -> Any:
            return {"attention_mask": torch.arange(4) <= row % 4, "x": self.inputs[row], "y": self.targets[row]}

    model = nn.Linear(4, 1)
    loop = GovernedLoop(
        Texts(8),
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        "w",
        [4],
        accumulate=2,
        order=lambda epoch: range(8),
    )
    with loop:
        for batch in loop:
            with loop.step():
                loop.backward(nn.functional.mse_loss(model(batch["x"]), batch["y"]))
    assert registrar.job.steps == [(8, 2.5, 2)]


def test_clipping_comes_before_the_optimizer_step_and_a_scaler_unscales_first(registrar: Registrar) -> None:
    calls = []

    class Scaler:
        def scale(self, loss: Any) -> Any:
            calls.append("scale")
            return loss

        def unscale_(self, optimizer: Any) -> None:
            calls.append("unscale")

        def step(self, optimizer: Any) -> None:
            calls.append("step")

        def update(self) -> None:
            calls.append("update")

    bench = Bench([ROWS], before_step=lambda: calls.append("clip"), scaler=Scaler())
    with bench.loop:
        bench.epoch()
    assert calls == ["scale", "unscale", "clip", "step", "update"]


class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Any:
        return iter([])


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"dataset": Stream()}, "dataset must have a length and indices"),
        ({"loader": {"shuffle": True, "num_workers": 1}}, "loader: shuffle is set by the loop; leave it out"),
        ({"rule": "log"}, "rule must be one of"),
    ],
)
def test_what_cannot_be_governed_is_refused_in_one_line(more: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Bench([8], **more)


def test_a_batch_without_a_step_is_a_mistake_that_is_told(registrar: Registrar) -> None:
    bench = Bench([8])
    with bench.loop, pytest.raises(RuntimeError, match="each batch wants one `with loop.step\\(\\):`"):
        for _ in bench.loop:
            pass


def test_two_processes_share_each_epoch_and_change_their_batch_size_together(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    worker = Path(__file__).with_name("ddp_worker.py")
    started = []
    for rank in range(2):
        environment = {
            **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2", "OUT": str(tmp_path / f"{rank}.pt"), "PYTHONPATH": str(Path(__file__).parent),
        }  # fmt: skip
        started.append(subprocess.Popen([sys.executable, str(worker)], env=environment, stderr=subprocess.PIPE))
    for process in started:
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors.decode()[-2000:]
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    times = Counter(first["rows"] + second["rows"])
    assert max(times.values()) == 2, "two epochs, each sample once in each"
    assert 2 * (ROWS - 1) <= times.total() == first["samples_done"], "at most one is left out, having no partner"
    assert first["sizes"] == second["sizes"]
    assert set(first["sizes"]) == {4, 8}
    assert first["jobs"] == 1
    assert second["jobs"] == 0, "process 0 alone speaks with the daemon"
    assert first["registered"] == [8, 16], "the daemon is told of the batches of both"
    assert sum(first["reported"]) == first["samples_done"] == second["samples_done"]
    for one, other in zip(first["weights"], second["weights"], strict=True):
        assert torch.equal(one, other)
