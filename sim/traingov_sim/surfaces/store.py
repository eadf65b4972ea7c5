"""The shipped surfaces: one JSON file each, ``traingov-sim.surface/1``, and how they are read.

A file holds the generator's parameters and how they were found; or it names another surface, of its own board or
of ``derived_board``, and factors on its times and powers (``derived_from``, ``time_scale``, ``power_scale``).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from .clocks import CLOCKS_HZ
from .generator import (
    BOARD_PARAMETERS,
    POWER_PARAMETERS,
    TIME_PARAMETERS,
    WORKLOAD_PARAMETERS,
    GeneratedSurface,
)

SCHEMA = "traingov-sim.surface/1"
DIRECTORY = Path(__file__).resolve().parent.parent / "data" / "surfaces"


def path_of(board: str, workload: str, directory: Path = DIRECTORY) -> Path:
    """Where the surface of a board and workload lies; a slash in the workload's name becomes an underscore."""
    return directory / f"{board}-{workload.replace('/', '_')}.json"


def names(board: str) -> list[str]:
    """The workloads that have a surface on ``board``, sorted. Raises KeyError, naming the boards, for another."""
    _check_board(board)
    files = [json.loads(path.read_text(encoding="utf-8")) for path in DIRECTORY.glob(f"{board}-*.json")]
    # "tx2" is also how the files of "tx2-nx" begin.
    return sorted(str(data["workload"]) for data in files if data["board"] == board)


def read(board: str, workload: str) -> dict[str, Any]:
    """The file of a surface, as plain values. Raises KeyError with the known names."""
    _check_board(board)
    path = path_of(board, workload)
    if "\\" in workload or ".." in workload or not path.is_file():
        raise KeyError(f"no surface of {workload!r} on {board}; known: {', '.join(names(board))}")
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if data.get("board") != board:
        raise KeyError(f"no surface of {workload!r} on {board}; known: {', '.join(names(board))}")
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema is {data.get('schema')!r}, expected {SCHEMA!r}")
    return data


@cache
def load(board: str, workload: str) -> GeneratedSurface:
    """The surface of ``workload`` on ``board``. Raises KeyError with the known names."""
    data = read(board, workload)
    if "derived_from" in data:
        base = load(data.get("derived_board", board), data["derived_from"])
        factors = dict.fromkeys(TIME_PARAMETERS, float(data["time_scale"]))
        factors |= dict.fromkeys(POWER_PARAMETERS, float(data.get("power_scale", 1.0)))
        parameters = {n: v * factors.get(n, 1.0) for n, v in base.parameters.items()}
        # Irregularities belong to a board's clocks.
        irregularities = dict(base.irregularities) if base.board == board else {}
    else:
        parameters = {name: float(data["parameters"][name]) for name in BOARD_PARAMETERS + WORKLOAD_PARAMETERS}
        irregularities = {int(hz): float(factor) for hz, factor in data.get("irregularities", {}).items()}
    return GeneratedSurface(
        board=board,
        workload=workload,
        parameters=parameters,
        max_frequency_hz=CLOCKS_HZ[board][-1],
        memory_base_bytes=int(data["memory_base_bytes"]),
        memory_sample_bytes=int(data["memory_sample_bytes"]),
        irregularities=irregularities,
    )


def features(board: str, workload: str) -> dict[str, Any]:
    """What the decision tree reads of a workload (method B): model_type, layers, hidden_size, seq_len_avg and
    gpu_utilization (percent, at mode 0). Raises KeyError where the workload has none.
    """
    data = read(board, workload)
    if "features" not in data:
        raise KeyError(f"{workload} on {board} has no features: only fine-tuning workloads have")
    return dict(data["features"])


def _check_board(board: str) -> None:
    if board not in CLOCKS_HZ:
        raise KeyError(f"no virtual board {board!r}; known: {', '.join(sorted(CLOCKS_HZ))}")
