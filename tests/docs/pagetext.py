"""Reads what the tests of the documentation need of a Markdown page: fenced blocks, headings, links, notes to us.

Notes are HTML comments right before a block:

- ``<!-- test: WORD KEY=VALUE … -->``: how the block is run, see ``sandbox.py``
- ``<!-- not run: REASON -->``: why it is not; its commands are looked at all the same
- ``<!-- setup: COMMAND -->``: run before what follows, and not shown
- ``<!-- file: PATH -->``: the block is that file as a whole (``test_adding_a_policy.py``)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

_FENCE = re.compile(r"^( *)(`{3,})(\S*)\s*$")
_NOTE = re.compile(r"^\s*<!-- (test|not run|setup|file): (.*?) *-->\s*$")
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block, ``line`` being the one of its fence; ``notes`` are pairs of (kind, text) before it."""

    page: Path
    line: int
    language: str
    body: tuple[str, ...]
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def not_run(self) -> str | None:
        return next((text for kind, text in self.notes if kind == "not run"), None)

    @property
    def file(self) -> str | None:
        return next((text for kind, text in self.notes if kind == "file"), None)

    @property
    def setups(self) -> list[str]:
        return [text for kind, text in self.notes if kind == "setup"]

    @property
    def options(self) -> dict[str, str]:
        """The words of ``test`` notes; a bare word has the value ``yes``."""
        words = [word for kind, text in self.notes if kind == "test" for word in text.split()]
        return {key: value or "yes" for key, _, value in (word.partition("=") for word in words)}

    @property
    def commands(self) -> list[str]:
        """What a reader types: a ``sh`` block as one script; of a ``console`` block each line after ``$ ``, with what
        goes on with a backslash or until the end of a here-document."""
        if self.language == "sh":
            return ["\n".join(self.body)]
        found: list[str] = []
        open_until: str | None = None
        for line in self.body:
            if open_until is not None:
                found[-1] += "\n" + line
                if line == open_until or (open_until == "" and not line.endswith("\\")):
                    open_until = None
            elif line.startswith("$ "):
                found.append(line[2:])
                here = re.search(r"<<'?(\w+)'?", line)
                open_until = here[1] if here else "" if line.endswith("\\") else None
        return found

    def output_of(self, number: int) -> list[str]:
        """The lines shown after the command of that number, in a ``console`` block."""
        at, lines = -1, []
        for line in self.body:
            if line.startswith("$ "):
                at += 1
            elif at == number:
                lines.append(line)
        return lines


@dataclass
class Page:
    """A page as the tests see it."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    links: list[tuple[int, str]] = field(default_factory=list)
    indented: list[tuple[int, str]] = field(default_factory=list)  # first lines of indented blocks
    inline: list[tuple[int, str]] = field(default_factory=list)  # `code` in the text


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MkDocs both make it of the headings we write."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text)).strip("-")


def read(path: Path) -> Page:
    """The page in ``path``."""
    page = Page(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    notes: list[tuple[str, str]] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if fence := _FENCE.match(line):
            end = number + 1
            while end < len(lines) and lines[end].strip() != fence[2]:
                end += 1
            assert end < len(lines), f"{path}:{number + 1}: this block is never closed"
            body = tuple(text.removeprefix(fence[1]) for text in lines[number + 1 : end])
            page.blocks.append(Block(path, number + 1, fence[3], body, tuple(notes)))
            notes = []
            number = end + 1
            continue
        if note := _NOTE.match(line):
            notes.append((note[1], note[2]))
        elif line.strip():
            assert not notes, f"{path}:{number + 1}: a note belongs right before a block: {notes}"
            _text(page, number, lines)
        number += 1
    return page


def _text(page: Page, number: int, lines: list[str]) -> None:
    line = lines[number]
    if line.startswith("    ") and not lines[number - 1].strip():
        page.indented.append((number + 1, line.strip()))
        return
    if line.startswith("    ") and page.indented and lines[number - 1].startswith("    "):
        return
    if heading := re.match(r"^#+ (.*)", line):
        page.anchors.add(slug(heading[1]))
    page.links += [(number + 1, target) for target in _LINK.findall(re.sub(r"`[^`]*`", "", line))]
    page.inline += [(number + 1, code) for code in re.findall(r"`([^`]+)`", line)]
