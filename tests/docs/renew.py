"""Writes into pages what their commands say today: ``python tests/docs/renew.py docs/operating.md …``

Only ``console`` blocks that the tests compare (``labels``, ``exact``) and that leave nothing out ("...") are renewed.
Look at the difference before you keep it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pagetext import Block, read
from sandbox import Sandbox


def renewed(block: Block, outputs: list[str]) -> list[str]:
    """The block's lines with new outputs."""
    lines: list[str] = []
    for command, output in zip(block.commands, outputs, strict=True):
        lines += [f"$ {command}", *(line.rstrip() for line in output.rstrip("\n").splitlines())]
    return lines


def renew(path: Path) -> None:
    """Run the page, and write it anew."""
    changes: list[tuple[Block, list[str]]] = []
    with Sandbox() as sandbox:
        for block in read(path).blocks:
            if not (block.language in ("sh", "console") or block.setups or block.options):
                continue
            sandbox.said.clear()
            sandbox.run(block, compare=False)
            compared = {"labels", "exact"} & block.options.keys()
            elided = any(line.strip() in ("...", "…") for line in block.body)
            if block.language == "console" and compared and not elided and block.not_run is None:
                changes.append((block, [sandbox.there(text) for text in sandbox.said]))
    lines = path.read_text().splitlines()
    for block, outputs in reversed(changes):
        lines[block.line : block.line + len(block.body)] = renewed(block, outputs)
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name).resolve())
