"""Writes the tables of docs/evaluation.md about caps and drift, from what two commands printed.

    traingov-sim evaluate cap --json > cap.json
    traingov-sim evaluate drift --json > drift.json
    python docs/cap_drift_tables.py cap.json drift.json

Replaces what stands between the marker lines of the page, and leaves the rest alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traingov_sim.evaluate.report_cap import cells
from traingov_sim.evaluate.report_drift import scenario_cells

PAGE = Path(__file__).resolve().parent / "evaluation.md"


def caps(data: dict[str, Any]) -> Iterator[str]:
    """Every board and series."""
    yield (
        "| series | board | above | steady | steady, not measuring | by telemetry | overshoot | settling "
        "| guard ≤ 2 samples | lost | by batch size, clock | with one batch size | measuring |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    order = list(dict.fromkeys(r["series"] for r in data["rows"]))
    for row in sorted(data["rows"], key=lambda r: order.index(r["series"])):
        yield "| " + " | ".join(cells(row)) + " |"


def sources(data: dict[str, Any]) -> Iterator[str]:
    """Every source of drift."""
    yield (
        "| source | verdicts | shift of time, power | delay: median | points again | time error of the table | regret "
        "| training lost | measuring | what was done |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in data["scenarios"]["rows"]:
        yield "| " + " | ".join(scenario_cells(row)) + " |"


def main() -> None:
    """Write both sections into the page."""
    if len(sys.argv) != 3:
        sys.exit("cap_drift_tables: name the JSON files that `evaluate cap` and `evaluate drift` printed")
    page = PAGE.read_text(encoding="utf-8")
    for name, section, path in (("caps", caps, sys.argv[1]), ("sources", sources, sys.argv[2])):
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, rest = page.split(begin, 1)
        page = "\n".join([head + begin, "", *section(data), "", end + rest.split(end, 1)[1]])
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
