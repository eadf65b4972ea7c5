"""Reload: what takes effect at once, what waits, and a wrong file that changes nothing."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from traingov.config import Config, load_config
from traingov.data import data_dir
from traingov.reload import Reloader
from traingov.telemetry.rails import RailTable
from traingov.telemetry.samples import Sampler

RULE = Sampler(RailTable.load(data_dir() / "boards"), "unknown", lambda rule, unknown: None).rule


class Service:
    """Remembers what was applied and what systemd was told."""

    def __init__(self, file: Path, text: str) -> None:
        file.write_text(text)
        self.applied: list[tuple[Config, Config]] = []
        self.sent: list[str] = []
        self.reloader = Reloader(
            [file], load_config([file]), lambda: RULE, lambda a, b: self.applied.append((a, b)), self.sent.append
        )

    def reload(self, times: int = 1) -> None:
        async def main() -> None:
            for _ in range(times):
                self.reloader.request()
                await asyncio.sleep(0)  # the first one begins to read
            while not any(text.startswith("READY=1") for text in self.sent):
                await asyncio.sleep(0.005)

        self.sent.clear()
        asyncio.run(asyncio.wait_for(main(), 20))


@pytest.fixture(autouse=True)
def level() -> object:
    before = logging.getLogger().level
    logging.getLogger().setLevel(logging.INFO)
    yield
    logging.getLogger().setLevel(before)


def test_cap_and_policy_are_taken_over_and_other_keys_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = Service(tmp_path / "c.yaml", "policy: joint\n")
    (tmp_path / "c.yaml").write_text("policy: energy\ncap: {power_w: 7}\nprofile: {max_points: 9}\nlog_level: debug\n")
    service.reload()
    ((old, new),) = service.applied
    assert (old.cap, old.values["policy"]) == (None, "joint")
    assert new.cap is not None
    assert (new.cap.power_w, new.values["policy"]) == (7, "energy")
    assert logging.getLogger().level == logging.DEBUG
    assert "profile.max_points changed, which takes effect when the service is restarted" in caplog.text
    assert "taken over: cap, log_level, policy" in caplog.text
    assert service.sent[0].startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert service.sent[-1] == "READY=1\nSTATUS=Configuration reloaded"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("policy: quick\n", "c.yaml:1: policy: 'quick' is not one of"),
        ("policy: [\n", "is not YAML"),
        ("energy: {tree: no-such-tree}\n", "energy.tree"),
        ("cap: {power_w: -1}\n", "cap"),
    ],
)
def test_a_wrong_file_changes_nothing_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, why: str
) -> None:
    file = tmp_path / "c.yaml"
    service = Service(file, "policy: joint\n")
    file.write_text(text)
    service.reload()
    assert service.applied == []
    assert why in caplog.text
    assert "the old configuration stays" in caplog.text
    assert service.sent[-1].startswith("READY=1\nSTATUS=The old configuration stays: ")
    file.write_text("policy: energy\n")
    service.reload()
    ((old, new),) = service.applied
    assert (old.values["policy"], new.values["policy"]) == ("joint", "energy")


def test_a_file_that_vanished_is_a_wrong_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = Service(tmp_path / "c.yaml", "policy: joint\n")
    (tmp_path / "c.yaml").unlink()
    service.reload()
    assert service.applied == []
    assert "cannot be read" in caplog.text


def test_a_second_request_while_one_runs_is_not_lost_and_one_answer_is_given(tmp_path: Path) -> None:
    service = Service(tmp_path / "c.yaml", "policy: joint\n")
    service.reload(times=3)
    assert len(service.applied) == 2
    assert [text for text in service.sent if text.startswith("READY=1")] == ["READY=1\nSTATUS=Configuration reloaded"]
