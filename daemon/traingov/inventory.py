"""What lookup tables this machine holds: read only, so that looking never moves a damaged file (the service does)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traingov_policies.lut import Lut

from .data import data_dir

KINDS = ("table", "prior", "shipped")


@dataclass(frozen=True)
class Entry:
    """A file: ``kind`` is "table" (measured here), "prior" (imported) or "shipped" (came with the package).

    ``lut`` is None for a damaged file, and ``error`` says why.
    """

    kind: str
    path: Path
    lut: Lut | None
    error: str | None = None

    @property
    def signature(self) -> str:
        """The workload's signature; its name where the file states none."""
        if self.lut is None:
            return self.path.stem
        return self.lut.signature or self.lut.workload

    def cells(self) -> dict[str, int]:
        """How many cells are measured, predicted, infeasible, failed or empty."""
        return {} if self.lut is None else cells_by_origin(self.lut)

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the table itself."""
        base = {"kind": self.kind, "path": str(self.path), "error": self.error}
        if self.lut is None:
            return base
        lut = self.lut
        return {
            **base, "board": lut.board, "release": lut.release, "power_mode": lut.power_mode, "workload": lut.workload,
            "signature": self.signature, "batch_sizes": list(lut.batch_sizes),
            "gpu_frequencies_hz": list(lut.gpu_frequencies_hz), "cells": self.cells(), "measured_at": lut.measured_at,
        }  # fmt: skip


def cells_by_origin(lut: Lut) -> dict[str, int]:
    """Cells by origin; one without a stated origin counts as measured where it has a time, else as empty."""
    count = Counter(
        (cell := lut.cell(point)).origin or ("measured" if cell.time_s is not None else "empty")
        for point in lut.points()
    )
    return {name: count[name] for name in ("measured", "predicted", "infeasible", "failed", "empty")}


def entries(state_dir: Path) -> list[Entry]:
    """Every table under ``state_dir`` and in the package's ``luts`` folder, tables first. Unreadable ones are named."""
    found = [_read("table", path) for path in sorted((state_dir / "lut").glob("*/*/*/*.json"))]
    found += [_read("prior", path) for path in sorted((state_dir / "priors").glob("*/*.json"))]
    found += [_read("shipped", path) for path in sorted((data_dir() / "luts").glob("*/*.json"))]
    return found


def _read(kind: str, path: Path) -> Entry:
    try:
        return Entry(kind, path, Lut.from_json(json.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        return Entry(kind, path, None, f"cannot be read: {error.strerror or error}")
    except (ValueError, AttributeError) as error:
        return Entry(kind, path, None, f"damaged: {error}")
