"""What the framework helpers cost a training step, as a ratio to the same training without them, in one run.

    .venvs/frameworks/bin/python benchmarks/framework_step.py [--rounds 7] [--json]

A small network (64-128-10, batch 32, one thread of the CPU) is trained by each framework with and without its helper,
by turns, with a live server; a step of a real job is longer, so the microseconds say more than the ratio. Per step:
median over rounds. ``job.step()`` alone is in client_step.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from client_step import serve

ROWS, BATCH, EPOCHS = 3200, 32, 5
STEPS = EPOCHS * ROWS // BATCH


def torch_pair(path: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """A loop by hand, and the governed one."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    from traingov_client.frameworks.torch_loop import GovernedLoop  # noqa: PLC0415

    data = torch.utils.data.TensorDataset(torch.randn(ROWS, 64), torch.randint(0, 10, (ROWS,)))

    def make() -> tuple[Any, Any]:
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    def by_hand() -> None:
        model, optimizer = make()
        for _ in range(EPOCHS):
            for inputs, labels in torch.utils.data.DataLoader(data, BATCH, shuffle=True):
                nn.functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
                optimizer.zero_grad()

    def governed() -> None:
        model, optimizer = make()
        with GovernedLoop(data, model, optimizer, "bench", [BATCH], epochs=EPOCHS, every=10, socket=path) as loop:
            for _ in loop.epochs():
                for inputs, labels in loop:
                    with loop.step():
                        loop.backward(nn.functional.cross_entropy(model(inputs), labels))

    return by_hand, governed


def huggingface_pair(path: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """The Trainer without and with the callback."""
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415

    from traingov_client.frameworks.huggingface import TraingovCallback  # noqa: PLC0415

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": torch.nn.functional.cross_entropy(self.layers(x), labels)}

    rows = [{"x": torch.randn(64), "labels": number % 10} for number in range(ROWS)]

    def train(callbacks: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                folder, num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, save_strategy="no",
                report_to="none", disable_tqdm=True, use_cpu=True, logging_strategy="no",
            )  # fmt: skip
            trainer = transformers.Trainer(Net(), arguments, train_dataset=rows, callbacks=callbacks)
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.train()

    return lambda: train([]), lambda: train([TraingovCallback("bench", socket=path)])


def lightning_pair(path: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """The Lightning Trainer without and with the callback."""
    import torch  # noqa: PLC0415
    from lightning.pytorch import LightningModule, Trainer  # noqa: PLC0415

    from traingov_client.frameworks.lightning import TraingovCallback  # noqa: PLC0415

    data = torch.utils.data.TensorDataset(torch.randn(ROWS, 64), torch.randint(0, 10, (ROWS,)))

    class Net(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))

        def training_step(self, batch: Any, _: int) -> Any:
            return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(data, BATCH, shuffle=True)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=0.01)

    def train(callbacks: list[Any]) -> None:
        Trainer(
            max_epochs=EPOCHS, callbacks=callbacks, logger=False, enable_checkpointing=False, accelerator="cpu",
            enable_progress_bar=False, enable_model_summary=False, devices=1,
        ).fit(Net())  # fmt: skip

    return lambda: train([]), lambda: train([TraingovCallback("bench", [BATCH], socket=path)])


PAIRS = {"torch loop": torch_pair, "Hugging Face Trainer": huggingface_pair, "Lightning Trainer": lightning_pair}


def compare(pair: tuple[Callable[[], None], Callable[[], None]], rounds: int) -> dict[str, float]:
    """Processor time of this process per step: what other processes do does not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for train in pair:
        train()  # imports, first allocations
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            begin = time.process_time()
            pair[which]()
            times[which].append((time.process_time() - begin) / STEPS * 1e6)
    ratios = [governed / alone for alone, governed in zip(*times, strict=True)]
    return {
        "without_us": round(statistics.median(times[0]), 1),
        "with_us": round(statistics.median(times[1]), 1),
        "more_us": round(statistics.median(b - a for a, b in zip(*times, strict=True)), 1),
        "ratio": round(statistics.median(ratios), 4),
        "ratio_least": round(min(ratios), 4),
        "ratio_most": round(max(ratios), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    missing = [name for name in ("torch", "transformers", "lightning") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"left out: no {', '.join(missing)} here; pip install -r tests/frameworks.txt", file=sys.stderr)
        return
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = multiprocessing.get_context("spawn")
    ready, stop, answer = context.Event(), context.Event(), context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        server = context.Process(target=serve, args=(path, ready, stop, answer))
        server.start()
        if not ready.wait(60):
            raise SystemExit("the server did not start within 60 s")
        out = {name: compare(make(path), options.rounds) for name, make in PAIRS.items()}
        stop.set()
        reports, steps = answer.get(timeout=30)
        server.join(30)
    if reports == 0:
        raise SystemExit("the server saw no report: the figures do not count")
    if options.json:
        print(json.dumps({**out, "server": {"reports": reports, "steps": steps}}, indent=1))
        return
    for name, row in out.items():
        print(
            f"{name:22} {row['without_us']:8.1f} µs a step, with the helper {row['with_us']:8.1f} µs: "
            f"ratio {row['ratio']:.3f} "
            f"({row['ratio_least']:.3f} to {row['ratio_most']:.3f}), {row['more_us']:.0f} µs more"
        )
    print(f"server: {reports} reports, {steps} steps")


if __name__ == "__main__":
    main()
