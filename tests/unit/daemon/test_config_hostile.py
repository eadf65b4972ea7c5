"""Configuration files that are no mistake of a person: each gives one line and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from traingov.config import ConfigError, load_config, load_tree
from traingov.store import LutStore, load_relations


@pytest.mark.parametrize(
    "text",
    [
        "sampling: {stale_after_s: .nan}", "sampling: {idle_interval_s: .inf}", "cap: {power_w: .nan}",
        "root: 2020-13-45", 'objective: !!int "abc"', 'apply_timeout_s: !!float "abc"',
        "apply_timeout_s: " + "9" * 5000,
        "root: " + "[" * 3000, 'socket: "/a\\0b"', 'state_dir: "/a\\nb"', 'groups: {users: "\\uD800"}',
        "? [a, b]\n: c", "1: 2", "cap: [4]", "&a [*a]",
    ],
)  # fmt: skip
def test_a_hostile_configuration_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text + "\n", errors="surrogatepass")
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "3", "[" * 100_000, '{"schema": "traingov.tree/1", "name": "a", "board": "b", '
                                  '"max_frequency_hz": 5, "tree": {"feature": ["x"], "threshold": 1}}'])  # fmt: skip
def test_a_hostile_tree_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"t\.json"):
        load_tree(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"schema": "traingov.relation/1", "workload": [1], "batch_sizes": [8], "relative_samples": [1.0]}',
        "3",
        "null",
    ],
)
def test_hostile_files_in_the_state_directory_do_not_keep_the_service_from_starting(tmp_path: Path, text: str) -> None:
    (tmp_path / "relations").mkdir()
    (tmp_path / "relations" / "w.json").write_text(text)
    assert load_relations([tmp_path / "relations"]) == {}
    table = tmp_path / "lut" / "b" / "r" / "m" / "w.json"
    table.parent.mkdir(parents=True)
    table.write_text(text)
    LutStore(tmp_path / "lut")
    assert not table.exists()  # set aside
