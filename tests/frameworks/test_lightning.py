"""The callback in the real Lightning Trainer: a small network on the CPU, a scripted job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install -r tests/frameworks.txt")
pytest.importorskip("lightning", reason="no lightning here: pip install -r tests/frameworks.txt")

from lightning.pytorch import LightningModule, Trainer  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from scripted import Registrar  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from traingov_client.frameworks.lightning import TraingovCallback  # noqa: E402

ROWS = 42


class Net(LightningModule):  # type: ignore[misc]
    largest = 10**6

    def __init__(self, batch_size: int = 16, optimizer: str = "Adam", scheduled: bool = False) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)
        self.seen: list[list[int]] = []
        self.rates: list[float] = []

    def train_dataloader(self) -> Any:
        self.seen.append([])
        rows = torch.arange(ROWS)
        return DataLoader(TensorDataset(rows, torch.randn(ROWS, 4)), self.hparams.batch_size, shuffle=True)

    def val_dataloader(self) -> Any:
        return DataLoader(TensorDataset(torch.arange(8), torch.randn(8, 4)), 8)

    def training_step(self, batch: Any, _: int) -> Any:
        if len(batch[0]) > self.largest:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        self.seen[-1] += batch[0].tolist()
        self.rates.append(self.optimizers().param_groups[0]["lr"])
        return self.layer(batch[1]).square().mean()

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("loss", self.layer(batch[1]).square().mean())

    def configure_optimizers(self) -> Any:
        optimizer = getattr(torch.optim, self.hparams.optimizer)(self.parameters(), lr=0.1)
        if not self.hparams.scheduled:
            return optimizer
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)]


def fit(module: Any, callback: Any, *more_callbacks: Any, checkpoint: str | None = None, **more: Any) -> Any:
    options: dict[str, Any] = {
        "max_epochs": 3, "logger": False, "enable_checkpointing": bool(more_callbacks), "enable_progress_bar": False,
        "enable_model_summary": False, "accelerator": "cpu", "devices": 1, "limit_val_batches": 0,
        "reload_dataloaders_every_n_epochs": 1, **more,
    }  # fmt: skip
    trainer = Trainer(callbacks=[callback, *more_callbacks], **options)
    trainer.fit(module, ckpt_path=checkpoint)
    return trainer


def test_the_batch_size_changes_between_epochs_and_each_sample_is_trained_once_an_epoch(registrar: Registrar) -> None:
    registrar.advice = {1: 4, 2: 8}
    module = Net()
    fit(module, TraingovCallback("net", [4, 8, 16]))
    job = registrar.job
    assert [sorted(rows) for rows in module.seen] == [list(range(ROWS))] * 3
    assert job.batch_of_step == [16] * 3 + [4] * 11 + [8] * 6
    assert [n for n, _, _ in job.steps] == [16, 16, 10] + [4] * 10 + [2] + [8] * 5 + [2]
    assert module.rates[0] == pytest.approx(0.1)
    assert module.rates[3] == pytest.approx(0.1 * (4 / 16) ** 0.5)
    assert module.rates[-1] == pytest.approx(0.1 * (8 / 16) ** 0.5)
    assert job.ended


def test_the_first_loader_is_made_with_the_size_that_the_daemon_advised_at_the_start(
    registrar: Registrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advising(*given: Any, **fields: Any) -> Any:
        job = registrar(*given, **fields)
        job.batch_size = 8
        return job

    monkeypatch.setattr("traingov_client.frameworks.lightning.register", advising)
    module = Net(optimizer="SGD")
    fit(module, TraingovCallback("net", [4, 8, 16]), max_epochs=1)
    assert [n for n, _, _ in registrar.job.steps] == [8] * 5 + [2]
    assert module.rates[0] == pytest.approx(0.05), "linear for SGD"


def test_a_schedule_goes_on_at_the_scaled_rate(registrar: Registrar) -> None:
    registrar.advice = {1: 4}
    module = Net(scheduled=True)
    fit(module, TraingovCallback("net", [4, 16]), max_epochs=2)
    assert module.rates[0] == pytest.approx(0.1)
    assert module.rates[-1] == pytest.approx(0.1 * 0.5 * 0.5)


def test_accumulated_gradients_are_one_step_of_several_batches(registrar: Registrar) -> None:
    fit(Net(8), TraingovCallback("net", [8]), max_epochs=1, accumulate_grad_batches=4)
    assert [(n, batches) for n, _, batches in registrar.job.steps] == [(32, 4), (10, 2)]


def test_one_batch_size_needs_nothing_of_the_module(registrar: Registrar) -> None:
    module = Net(6)
    fit(module, TraingovCallback("net", [6], policy="energy"), max_epochs=1, reload_dataloaders_every_n_epochs=0)
    assert [n for n, _, _ in registrar.job.steps] == [6] * 7
    assert registrar.job.fields["policy"] == "energy"
    assert module.rates[0] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("callback", "more", "text"),
    [
        ({}, {"reload_dataloaders_every_n_epochs": 0}, r"give Trainer\(reload_dataloaders_every_n_epochs=1\)"),
        ({"name": "rows"}, {}, "neither the module, its hparams nor the datamodule has 'rows'"),
    ],
)
def test_a_batch_size_that_could_not_change_is_refused_before_training(
    registrar: Registrar, callback: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        fit(Net(), TraingovCallback("net", [4, 16], **callback), **more)
    assert registrar.jobs == []


def test_a_batch_that_does_not_fit_is_told_and_the_error_goes_on(registrar: Registrar) -> None:
    module = Net()
    module.largest = 8
    with pytest.raises(torch.OutOfMemoryError):
        fit(module, TraingovCallback("net", [8, 16]))
    assert registrar.job.failed == [16]
    assert registrar.job.ended


def test_validation_and_checkpoints_are_pauses(registrar: Registrar, tmp_path: Path) -> None:
    fit(
        Net(), TraingovCallback("net", [16]), ModelCheckpoint(tmp_path, every_n_train_steps=2), max_epochs=1,
        limit_val_batches=1, val_check_interval=1, num_sanity_val_steps=0,
    )  # fmt: skip
    assert registrar.job.pauses.count("evaluation") == 3
    assert "saving" in registrar.job.pauses
    assert [n for n, _, _ in registrar.job.steps] == [16, 16, 10]
    assert registrar.job.paused == 0


def test_a_checkpoint_goes_on_with_its_progress_batch_size_and_rate(registrar: Registrar, tmp_path: Path) -> None:
    registrar.advice = {1: 4}
    keep = ModelCheckpoint(tmp_path, filename="last", save_top_k=-1, every_n_epochs=2, save_on_train_epoch_end=True)
    fit(Net(), TraingovCallback("net", [4, 16]), keep, max_epochs=2)
    registrar.advice = {}
    module = Net()
    fit(module, TraingovCallback("net", [4, 16]), checkpoint=str(tmp_path / "last.ckpt"), max_epochs=3)
    job = registrar.job
    assert (job.fields["samples_done"], job.fields["resume"]) == (2 * ROWS, True)
    assert set(job.batch_of_step) == {4}
    assert sum(n for n, _, _ in job.steps) == ROWS
    assert module.rates[0] == pytest.approx(0.05)


def test_features_and_signature_are_those_of_the_module(registrar: Registrar) -> None:
    fit(Net(), TraingovCallback("net", [16], features={"layers": 1}), max_epochs=1)
    assert registrar.job.fields["signature"] == {"architecture": "Net-5p", "precision": "float32", "optimizer": "adam"}
    assert registrar.job.fields["features"] == {"layers": 1}
