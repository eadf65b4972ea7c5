"""A governed PyTorch loop: batch size and clock follow the daemon, a checkpoint is gone on from.

    python examples/torch_loop.py --epochs 5 --checkpoint digits.pt

A small network learns scikit-learn's bundled digits, on a GPU where there is one. What makes it a governed job is
marked (1) to (4). Where TRAINGOV_SIM_GPU names a virtual board, each step also passes through its emulated GPU.
"""

from __future__ import annotations

import argparse
import json
import os

import torch
from common import Cpu, open_device
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from traingov_client.frameworks.torch_loop import GovernedLoop

WORKLOAD = "digits-mlp"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small PyTorch network on digits, governed by traingovd.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-sizes", default="8,16,32,64,128")
    parser.add_argument("--every", type=int, default=20, help="steps between points where the batch size may change")
    parser.add_argument("--checkpoint", help="go on from this file if it exists; written after each epoch")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    place = "cuda" if torch.cuda.is_available() else "cpu"
    device = open_device()
    digits = load_digits()
    inputs, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    training, test = TensorDataset(inputs[300:], labels[300:]), (inputs[:300].to(place), labels[:300].to(place))
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(place)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # for the largest batch size

    loop = GovernedLoop(  # (1)
        training,
        model,
        optimizer,
        workload=WORKLOAD,
        batch_sizes=[int(size) for size in options.batch_sizes.split(",")],
        epochs=options.epochs,
        every=options.every,
        sync=None if isinstance(device, Cpu) else device.synchronize,
    )
    if options.checkpoint and os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loop.load_state_dict(saved["loop"])  # (2)
    accuracy, batch_sizes = 0.0, set()
    with loop:
        for _ in loop.epochs():
            for batch, targets in loop:  # (3)
                with loop.step():  # (4) loop.backward, then the optimizer's step
                    device.submit(WORKLOAD, loop.batch_size)
                    predicted = model(batch.to(place))
                    loop.backward(nn.functional.cross_entropy(predicted, targets.to(place)))
                batch_sizes.add(loop.batch_size)
            with loop.pause("evaluation"), torch.no_grad():
                accuracy = float((model(test[0]).argmax(1) == test[1]).float().mean())
            if options.checkpoint:
                with loop.pause("checkpoint"):
                    state = {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loop": loop.state_dict(),
                    }
                    torch.save(state, options.checkpoint)
        result = {"epochs": loop.epoch, "steps": loop.steps, "samples": loop.samples_done}
        print(json.dumps({**result, "accuracy": round(accuracy, 4), "batch_sizes": sorted(batch_sizes)}), flush=True)


if __name__ == "__main__":
    main()
