"""A governed fine-tuning with the Hugging Face Trainer: the clock that costs the least energy, at a fixed batch size.

    python examples/huggingface_trainer.py --steps 200

A small BERT, made here and not downloaded, learns the topic of texts that the script makes, on a GPU where there is
one. What makes it a governed job is (1). Where TRAINGOV_SIM_GPU names a virtual board, each step also passes through
its emulated GPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile

import numpy as np
import torch
from common import Cpu, open_device
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from traingov_client.frameworks.huggingface import TraingovCallback

WORKLOAD, BATCH_SIZE = "text-classifier", 32
TOPICS, WORDS, PADDING = 4, 200, 0


class Texts(torch.utils.data.Dataset):
    """Texts of 4 to 60 words; one word in four is of the text's topic."""

    def __init__(self, n: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.topics = draw.integers(0, TOPICS, n)
        self.words = []
        for topic, length in zip(self.topics, draw.integers(4, 61, n), strict=True):
            common, own = draw.integers(50, WORDS, length), 1 + 10 * topic + draw.integers(0, 10, length)
            self.words.append(torch.tensor(np.where(draw.random(length) < 0.25, own, common)))

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return self.words[row], int(self.topics[row])


def padded(rows: list[tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
    """A batch: token ids, the mask of what is no padding, and topics."""
    ids = torch.nn.utils.rnn.pad_sequence([words for words, _ in rows], batch_first=True, padding_value=PADDING)
    return {"input_ids": ids, "attention_mask": (ids != PADDING).long(), "labels": torch.tensor([t for _, t in rows])}


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tune a small BERT with the Trainer, governed by traingovd.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--policy", default="energy", choices=["energy", "joint", "observe"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = open_device()
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    model = BertForSequenceClassification(BertConfig(vocab_size=WORDS, num_labels=TOPICS, **size))
    more = {}
    if not isinstance(device, Cpu):
        model.register_forward_pre_hook(
            lambda module, _: device.submit(WORKLOAD, BATCH_SIZE) if module.training else None
        )
        more["sync"] = device.synchronize
    governed = TraingovCallback(WORKLOAD, policy=options.policy, **more)  # (1)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model,
            TrainingArguments(
                folder, max_steps=options.steps, per_device_train_batch_size=BATCH_SIZE, learning_rate=2e-3,
                save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=not torch.cuda.is_available(),
            ),
            train_dataset=Texts(2000, seed=0),
            eval_dataset=Texts(500, seed=1),
            data_collator=padded,
            compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
            callbacks=[governed],
        )  # fmt: skip
        trainer.train()
        accuracy = trainer.evaluate()["eval_accuracy"]
    print(json.dumps({"steps": trainer.state.global_step, "accuracy": round(accuracy, 4)}), flush=True)


if __name__ == "__main__":
    main()
