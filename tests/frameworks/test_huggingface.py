"""The callback in the real Hugging Face Trainer: a small BERT on the CPU, a scripted job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="no torch here: pip install -r tests/frameworks.txt")
transformers = pytest.importorskip("transformers", reason="no transformers here: pip install -r tests/frameworks.txt")

from scripted import Registrar  # noqa: E402

from traingov_client.frameworks.huggingface import TraingovCallback  # noqa: E402

ROWS = 22


class Texts(torch.utils.data.Dataset):  # type: ignore[misc]
    """Texts of 3 and 5 tokens by turns."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"input_ids": [1 + row % 7] * (3 + 2 * (row % 2)), "labels": row % 2}


def padded(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ids = torch.zeros(len(rows), 8, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


class Bert(transformers.BertForSequenceClassification):  # type: ignore[misc]
    largest = 10**6

    def forward(self, *given: Any, **named: Any) -> Any:
        if self.training and len(named["input_ids"]) > self.largest:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().forward(*given, **named)


def bert(**more: Any) -> Any:
    size = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 16}
    return Bert(transformers.BertConfig(vocab_size=9, num_labels=2, max_position_embeddings=16, **size, **more))


def trainer(folder: Path, callback: Any, model: Any = None, **more: Any) -> Any:
    arguments = transformers.TrainingArguments(
        str(folder),
        **{
            "num_train_epochs": 2, "per_device_train_batch_size": 4, "save_strategy": "no", "report_to": "none",
            "disable_tqdm": True, "use_cpu": True, "remove_unused_columns": False, "logging_strategy": "no", **more,
        },
    )  # fmt: skip
    return transformers.Trainer(
        model or bert(), arguments, train_dataset=Texts(), eval_dataset=Texts(), data_collator=padded,
        callbacks=[callback],
    )  # fmt: skip


def test_every_sample_is_reported_with_its_length_and_the_job_ends(registrar: Registrar, tmp_path: Path) -> None:
    callback = TraingovCallback("bert", policy="energy")
    trainer(tmp_path, callback).train()
    job = registrar.job
    assert (job.workload, job.batch_sizes, job.fields["policy"]) == ("bert", [4], "energy")
    assert [n for n, _, _ in job.steps] == [4, 4, 4, 4, 4, 2] * 2
    assert sum(n * length for n, length, _ in job.steps if length) == pytest.approx(2 * ROWS * 4.0)
    assert job.fields["samples_total"] == 2 * ROWS
    assert job.ended
    assert callback.job is None


def test_features_and_signature_are_those_of_the_model(registrar: Registrar, tmp_path: Path) -> None:
    model = bert()
    trainer(tmp_path, TraingovCallback("bert"), model, max_steps=1).train()
    assert registrar.job.fields["features"] == {"model_type": "bert", "layers": 3, "hidden_size": 16}
    signature = registrar.job.fields["signature"]
    assert signature["architecture"] == f"Bert-{sum(p.numel() for p in model.parameters())}p"
    assert (signature["precision"], signature["optimizer"]) == ("float32", "adamw")


def test_mixed_precision_is_part_of_the_signature(registrar: Registrar, tmp_path: Path) -> None:
    trainer(tmp_path, TraingovCallback("bert"), max_steps=1, bf16=True).train()
    assert registrar.job.fields["signature"]["precision"] == "bf16-mixed"


def test_accumulated_gradients_are_one_step_of_several_batches(registrar: Registrar, tmp_path: Path) -> None:
    trainer(tmp_path, TraingovCallback("bert"), num_train_epochs=1, gradient_accumulation_steps=4).train()
    assert [(n, batches) for n, _, batches in registrar.job.steps] == [(16, 4), (6, 2)]


def test_evaluation_and_saving_are_pauses_and_evaluation_is_not_training(registrar: Registrar, tmp_path: Path) -> None:
    more = {"eval_strategy": "steps", "eval_steps": 3, "save_strategy": "steps", "save_steps": 2}
    trainer(tmp_path, TraingovCallback("bert"), num_train_epochs=1, **more).train()
    assert registrar.job.pauses == ["saving", "evaluation", "saving", "evaluation"]
    assert sum(n for n, _, _ in registrar.job.steps) == ROWS
    assert registrar.job.paused == 0


def test_a_checkpoint_goes_on_with_its_progress(registrar: Registrar, tmp_path: Path) -> None:
    trainer(tmp_path, TraingovCallback("bert"), save_strategy="steps", save_steps=4, num_train_epochs=1).train()
    again = trainer(tmp_path, TraingovCallback("bert"), num_train_epochs=2)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    job = registrar.job
    assert (job.fields["samples_done"], job.fields["resume"]) == (round(4 / 6 * ROWS), True)
    assert [n for n, _, _ in job.steps] == [4, 2, 4, 4, 4, 4, 4, 2]


def test_a_batch_that_does_not_fit_is_told_where_the_trainer_looks_for_one_that_does(
    registrar: Registrar, tmp_path: Path
) -> None:
    model = bert()
    model.largest = 4
    trainer(tmp_path, TraingovCallback("bert"), model, per_device_train_batch_size=8, auto_find_batch_size=True).train()
    first, last = registrar.jobs[0], registrar.jobs[-1]
    assert first.failed == [8]
    assert first.ended
    assert last.failed == []
    assert last.batch_sizes[0] <= 4
    assert sum(n for n, _, _ in last.steps) == 2 * ROWS


def test_a_failed_training_can_be_started_again(registrar: Registrar, tmp_path: Path) -> None:
    model = bert()
    model.largest = 1
    mine = trainer(tmp_path, TraingovCallback("bert"), model)
    with pytest.raises(torch.OutOfMemoryError):
        mine.train()
    model.largest = 10**6
    mine.train()
    assert [job.ended for job in registrar.jobs] == [True, True]
    assert registrar.jobs[0].failed == []
    assert sum(n for n, _, _ in registrar.job.steps) == 2 * ROWS, "each sample is counted once: one hook, not two"


def test_a_stream_is_counted_by_the_model_and_its_length_by_steps(registrar: Registrar, tmp_path: Path) -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return (Texts()[row] for row in range(ROWS))

    mine = trainer(tmp_path, TraingovCallback("bert"), max_steps=3)
    mine.train_dataset = Stream()
    mine.train()
    assert registrar.job.fields["samples_total"] == 12
    assert [n for n, _, _ in registrar.job.steps] == [4, 4, 4]


def test_several_machines_are_refused_in_one_line(
    registrar: Registrar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    callback = TraingovCallback("bert")
    mine = trainer(tmp_path, callback)
    state = transformers.TrainerState(train_batch_size=4)

    class Arguments:
        world_size, train_batch_size = 8, 4

    with pytest.raises(ValueError, match="traingov governs one board: 4 of 8 processes run on this machine"):
        callback.on_train_begin(Arguments(), state, mine.control)
