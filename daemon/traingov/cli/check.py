"""`traingov check`: whether a file of ours is right, with the place where it is not."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import click
import jsonschema

from traingov_policies.codec import SCHEMA as RECORDING
from traingov_policies.codec import decode_event, decode_header
from traingov_policies.lut import SCHEMA as LUT
from traingov_policies.lut import Lut
from traingov_policies.relation import SCHEMA as RELATION
from traingov_policies.relation import RelationVector
from traingov_policies.search.curves import SCHEMA as CURVE
from traingov_policies.search.curves import Curve
from traingov_policies.tree import SCHEMA as TREE
from traingov_policies.tree import Tree

from ..config import ConfigError, load_config
from ..device.boardtree import SCHEMA as BOARD_TREE
from ..device.boardtree import BoardTree
from ..telemetry.rails import SCHEMA as BOARD
from ..telemetry.rails import RailTableError, check_board_file
from .errors import WrongInput, read_json

_READERS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    LUT: Lut.from_json,
    RELATION: RelationVector.from_json,
    TREE: Tree.from_json,
    CURVE: Curve.from_json,
    BOARD_TREE: BoardTree.from_json,
}
_BOARD_LINE = re.compile(r"^schema:\s*[\"']?traingov\.board/", re.MULTILINE)
_SCHEMAS = Path(__file__).parents[1] / "schemas"


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def command(files: tuple[str, ...]) -> None:
    """Check settings, boards, tables, relation vectors, trees and recordings; exit status 2 if one is wrong."""
    wrong = 0
    for path in files:
        try:
            kind = check(path)
        except WrongInput as error:
            wrong += 1
            error.show()
        else:
            click.echo(f"{path}: {kind}, right")
    if wrong:
        raise SystemExit(2)


def check(path: str) -> str:
    """What kind of file ``path`` is. Raises WrongInput with one line when it is wrong."""
    if path.endswith((".yaml", ".yml")):
        return _check_yaml(Path(path))
    if path.endswith((".jsonl", ".jsonl.gz")):
        return _check_recording(path)
    data = read_json(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or schema not in _READERS:
        raise WrongInput(f"{path}: schema is {schema!r}, not one of {', '.join(sorted(_READERS))}")
    document = json.loads((_SCHEMAS / f"{schema.split('/')[0].removeprefix('traingov.')}.json").read_text())
    errors = sorted(jsonschema.Draft7Validator(document).iter_errors(data), key=lambda e: [str(p) for p in e.path])
    if errors:
        where = ".".join(str(key) for key in errors[0].path) or "document"
        raise WrongInput(f"{path}: {where}: {errors[0].message}")
    try:
        _READERS[schema](data)
    except ValueError as error:
        raise WrongInput(f"{path}: {error}") from None
    return str(schema)


def _check_yaml(path: Path) -> str:
    """A board file says so in its first key, schema; any other YAML is a configuration."""
    try:
        if _BOARD_LINE.search(path.read_text(encoding="utf-8")):
            check_board_file(path)
            return BOARD
        load_config([path])
    except (OSError, UnicodeDecodeError) as error:
        raise WrongInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (ConfigError, RailTableError) as error:
        raise WrongInput(str(error)) from None
    return "configuration"


def _check_recording(path: str) -> str:
    try:
        with _opened(path) as file:
            number = 0
            for number, line in enumerate(file, 1):
                try:
                    entry = json.loads(line)
                    if number == 1:
                        decode_header(entry)
                    elif "event" in entry:
                        decode_event(entry)
                except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
                    raise WrongInput(f"{path}:{number}: {error}") from None
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise WrongInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if number == 0:
        raise WrongInput(f"{path}: is empty: a recording begins with its header")
    return RECORDING


def _opened(path: str) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else Path(path).open(encoding="utf-8")
