"""A governed training with Lightning: the clock at any time, the batch size between epochs.

    python examples/lightning_trainer.py --epochs 5

A small network learns scikit-learn's bundled digits, on a GPU where there is one. What makes it a governed job is (1),
and that (2) the loader uses the module's ``batch_size`` and (3) is asked for anew each epoch. Where TRAINGOV_SIM_GPU
names a virtual board, each step also passes through its emulated GPU.
"""

from __future__ import annotations

import argparse
import json

import torch
from common import Cpu, Device, open_device
from lightning.pytorch import LightningModule, Trainer, seed_everything
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traingov_client.frameworks.lightning import TraingovCallback

WORKLOAD = "digits-mlp"


class Digits(LightningModule):
    """A small network and its data."""

    def __init__(self, device_of_steps: Device, batch_size: int) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.batch_sizes: list[int] = []
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self._steps_on = device_of_steps
        digits = load_digits()
        inputs, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
        self._training, self._test = (
            TensorDataset(inputs[300:], labels[300:]),
            TensorDataset(inputs[:300], labels[:300]),
        )

    def train_dataloader(self) -> DataLoader:
        self.batch_sizes.append(self.batch_size)
        return DataLoader(self._training, batch_size=self.batch_size, shuffle=True)  # (2)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self._test, batch_size=300)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        self._steps_on.submit(WORKLOAD, self.batch_size)
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        self.log("accuracy", (self.model(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)  # for the largest batch size


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network with Lightning, governed by traingovd.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-sizes", default="8,16,32,64,128")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seed_everything(0, verbose=False)
    sizes = [int(size) for size in options.batch_sizes.split(",")]
    device = open_device()
    module = Digits(device, max(sizes))
    more = {} if isinstance(device, Cpu) else {"sync": device.synchronize}
    trainer = Trainer(
        max_epochs=options.epochs,
        callbacks=[TraingovCallback(WORKLOAD, sizes, **more)],  # (1)
        reload_dataloaders_every_n_epochs=1,  # (3)
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, accelerator="auto", devices=1,
    )  # fmt: skip
    trainer.fit(module)
    accuracy = float(trainer.callback_metrics["accuracy"])
    print(json.dumps({"steps": trainer.global_step, "accuracy": round(accuracy, 4), "batch_sizes": module.batch_sizes}))


if __name__ == "__main__":
    main()
