"""What the rails of a board mean: which of them make up input power, and which compute power.

The knowledge is in ``etc/boards/*.yaml``, one file per board. A rule is chosen by capability: by the rails that a
reading shows, not by a list of versions. The board's name breaks ties only (DESIGN 5.5). Power is in watts.

A total is never the sum of what happens to be there: a rule whose rails are not all present gives None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

SCHEMA: Final = "traingov.board/1"
INPUT_RAILS: Final = ("VDD_IN", "VIN", "POM_5V_IN")  # one of these is the whole input on any board that has it
_DEFAULT_SETTLE_S: Final = 2.0
_DEFAULT_DEAD_TIME_S: Final = 0.8


class RailTableError(ValueError):
    """A board file is wrong; the message names the file and the key."""


@dataclass(frozen=True)
class Correction:
    """What somebody measured of a rail's sensor: true watts are ``gain`` times the reading plus ``offset_w``.

    The result stays what it is, below zero too: a rail's small negative reading is a sensor's zero error, and a sum
    that is not above zero counts as no reading where the sample is made.
    """

    gain: float = 1.0
    offset_w: float = 0.0

    def __call__(self, power_w: float) -> float:
        """``power_w`` as measured, corrected."""
        return self.gain * power_w + self.offset_w

    def __str__(self) -> str:
        return f"times {self.gain:g}" + (
            f" {'+' if self.offset_w > 0 else '-'} {abs(self.offset_w):g} W" if self.offset_w else ""
        )


@dataclass(frozen=True)
class RailRule:
    """How one board's rails are read.

    ``input_rails`` add up to input power, ``compute_rails`` to compute power (GPU and CPU; method B); empty where
    the board shows none. ``other_rails`` are known and in neither sum. ``settle_s``: wait after a clock change
    before measuring. ``dead_time_s``: from writing a clock until power shows it (the cap guard waits that long).
    """

    board: str
    name: str
    input_rails: tuple[str, ...]
    compute_rails: tuple[str, ...]
    other_rails: tuple[str, ...] = ()
    settle_s: float = _DEFAULT_SETTLE_S
    dead_time_s: float = _DEFAULT_DEAD_TIME_S

    def input_power_w(self, rails_w: Mapping[str, float]) -> float | None:
        """Watts that the whole board draws; None if a rail that belongs to it is missing."""
        return _total(self.input_rails, rails_w)

    def compute_power_w(self, rails_w: Mapping[str, float]) -> float | None:
        """Watts of the GPU and CPU rails; None if one of them is missing."""
        return _total(self.compute_rails, rails_w)

    def unknown(self, rail_names: Iterable[str]) -> tuple[str, ...]:
        """The rails that this rule does not know. They stay in the readings and in no sum."""
        known = {*self.input_rails, *self.compute_rails, *self.other_rails}
        return tuple(name for name in rail_names if name not in known and name.removesuffix("_2") not in known)

    def describe(self) -> str:
        """One line for people."""
        return (
            f"rails as on {self.name}: input power = {' + '.join(self.input_rails) or 'not measured'}; "
            f"compute power = {' + '.join(self.compute_rails) or 'not measured'}; "
            f"settle {self.settle_s:g} s, dead time {self.dead_time_s:g} s"
        )


def _total(names: tuple[str, ...], rails_w: Mapping[str, float]) -> float | None:
    if not names:
        return None
    total = 0.0
    for name in names:
        power = rails_w.get(name)
        if power is None:
            return None
        total += power
    return total


@dataclass(frozen=True)
class _Board:
    """One file: the words that name the board, and its rules (rails were renamed between releases)."""

    words: tuple[str, ...]
    rules: tuple[RailRule, ...]

    def match(self, name: str) -> int:
        """Length of the longest word of this board in ``name``; 0 where it is another board."""
        return max((len(word) for word in self.words if f" {word} " in name), default=0)


class RailTable:
    """All boards that are known by file. An unknown board with an input rail is served as well."""

    def __init__(self, boards: Iterable[tuple[tuple[str, ...], tuple[RailRule, ...]]]) -> None:
        self._boards = tuple(_Board(words, rules) for words, rules in boards)

    @classmethod
    def load(cls, directory: Path) -> RailTable:
        """Read every ``*.yaml`` in ``directory``. Raises RailTableError naming the file and the key."""
        files = sorted(directory.glob("*.yaml"))
        if not files:
            raise RailTableError(f"{directory}: no board file (*.yaml) here; give the folder that holds them")
        return cls(_read_board(path) for path in files)

    @property
    def rules(self) -> tuple[RailRule, ...]:
        """Every rule, in the order of the files."""
        return tuple(rule for board in self._boards for rule in board.rules)

    def rule_for(self, rail_names: Iterable[str], board_name: str | None = None) -> RailRule:
        """The rule that fits these rails. ``board_name`` is a device-tree model, a compatible or a file's name.

        1. A rule of the table all of whose summed rails are present. Of several the one that explains most
           rails; then the one whose board is named; then the one with the longest dead time, to be careful.
        2. A board that shows an input rail (VDD_IN, VIN, POM_5V_IN): input power is that rail.
        3. A named board that shows too few rails: its own rule, whose sums stay None until the rails appear.
        4. Else a rule that measures nothing, and says so.
        """
        present = frozenset(rail_names)
        name = _normalised(board_name or "")
        best: tuple[int, int, float, int] | None = None
        chosen: RailRule | None = None
        for board in self._boards:
            named = board.match(name)
            for rule in board.rules:
                summed = {*rule.input_rails, *rule.compute_rails}
                if not summed <= present:
                    continue
                known = summed | set(rule.other_rails)
                rank = (len(known & present), named, rule.dead_time_s, -len(known - present))
                if best is None or rank > best:
                    best, chosen = rank, rule
        return chosen or self._fallback(present, name)

    def _fallback(self, present: frozenset[str], name: str) -> RailRule:
        named = max(self._boards, key=lambda board: board.match(name), default=None)
        own: RailRule | None = None
        if named is not None and named.match(name):
            own = max(named.rules, key=lambda rule: len({*rule.input_rails, *rule.compute_rails} & present))
        for rail in INPUT_RAILS:
            if rail in present:
                if own is not None and own.input_rails == (rail,):
                    return own
                base = own or RailRule("unknown", "unknown board", (), ())
                return replace(base, input_rails=(rail,), compute_rails=(), other_rails=())
        return own or RailRule("unknown", "unknown board", (), ())


def check_board_file(path: Path) -> None:
    """Read one board file. Raises RailTableError naming the file and the key."""
    _read_board(path)


def _normalised(name: str) -> str:
    """Lower case, one blank between words and at both ends: "NVIDIA Jetson-Nano" as " nvidia jetson nano "."""
    return f" {' '.join(''.join(c if c.isalnum() else ' ' for c in name.lower()).split())} "


def _read_board(path: Path) -> tuple[tuple[str, ...], tuple[RailRule, ...]]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise RailTableError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise RailTableError(f"{path}: must be a mapping with schema, name, match and rails")
    if content.get("schema") != SCHEMA:
        raise RailTableError(f"{path}: schema: must be {SCHEMA}, not {content.get('schema')!r}")
    _no_other_keys(path, "", content, {"schema", "name", "match", "rails", "settle_s", "dead_time_s"})
    name = content.get("name")
    if not isinstance(name, str) or not name:
        raise RailTableError(f"{path}: name: must be a text, such as Jetson Nano")
    settle_s = _seconds(path, content, "settle_s", _DEFAULT_SETTLE_S)
    dead_time_s = _seconds(path, content, "dead_time_s", _DEFAULT_DEAD_TIME_S)
    words = {_normalised(word).strip() for word in (*_names(path, content, "match", ""), path.stem)}
    entries = content.get("rails")
    if not isinstance(entries, list) or not entries:
        raise RailTableError(f"{path}: rails: must be a list of rules with input, compute and other")
    rules = []
    for number, entry in enumerate(entries):
        at = f"rails[{number}]"
        if not isinstance(entry, dict):
            raise RailTableError(f"{path}: {at}: must be a mapping with input, compute and other")
        _no_other_keys(path, f"{at}.", entry, {"input", "compute", "other"})
        inputs, compute, other = (_names(path, entry, key, f"{at}.") for key in ("input", "compute", "other"))
        if not inputs:
            raise RailTableError(f"{path}: {at}.input: must name the rails that add up to input power")
        rules.append(RailRule(path.stem, name, inputs, compute, other, settle_s, dead_time_s))
    return tuple(sorted(words)), tuple(rules)


def _no_other_keys(path: Path, at: str, mapping: dict[object, object], allowed: set[str]) -> None:
    for key in mapping:
        if key not in allowed:
            raise RailTableError(f"{path}: {at}{key}: unknown key; known are {', '.join(sorted(allowed))}")


def _names(path: Path, mapping: dict[object, object], key: str, at: str) -> tuple[str, ...]:
    value = mapping.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise RailTableError(f"{path}: {at}{key}: must be a list of names, not {value!r}")
    if len(set(value)) != len(value):
        raise RailTableError(f"{path}: {at}{key}: names a rail twice")
    return tuple(value)


def _seconds(path: Path, mapping: dict[object, object], key: str, default: float) -> float:
    value = mapping.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 60:
        raise RailTableError(f"{path}: {key}: must be a number of seconds from 0 to 60, not {value!r}")
    return float(value)
