"""`traingov lut`: lookup tables of this machine: list, show, plot, import, export, compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from traingov_policies.lut import Lut
from traingov_policies.lut_diff import lut_difference
from traingov_policies.relation import RelationVector
from traingov_policies.robust import Choice, choose
from traingov_policies.values import Board, Objective

from ..device.board import UNKNOWN, identify
from ..device.files import SystemFiles
from ..inventory import Entry, entries
from ..store import LutStore, slug, write_atomically
from .check import check
from .errors import Failure, WrongInput, print_json
from .inputs import checked_cap, choice_options, read_lut, read_relation
from .lut_text import difference_lines, entry_lines, table_lines


@click.group("lut")
def group() -> None:
    """Lookup tables: time and power per operating point.

    TABLE is a file, or the signature (or workload name) of a table that `traingov lut list` shows.
    """


def _state_dir(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--state-dir", type=click.Path(path_type=Path), default=Path("/var/lib/traingov"), show_default=True,
        help="Where the service keeps its tables.",
    )(command)  # fmt: skip


@group.command("list")
@_state_dir
@click.option("--json", "as_json", is_flag=True)
def list_(state_dir: Path, as_json: bool) -> None:
    """Every table by board, release, power mode and signature: measured here, imported, shipped."""
    found = entries(state_dir)
    if as_json:
        print_json([entry.to_json() for entry in found])
    elif not found:
        click.echo(f"no table in {state_dir}: a registered job's first run measures one")
    else:
        click.echo("\n".join(entry_lines(found)))


@group.command("show")
@click.argument("table")
@choice_options
@_state_dir
@click.option("--json", "as_json", is_flag=True, help="Print the table's content.")
def show(
    table: str, *, relation_file: str | None, cap_w: float | None, objective: str, violation_probability: float,
    state_dir: Path, as_json: bool,
) -> None:  # fmt: skip
    """Print TABLE as grids; with --cap marks what is not below it, and the point that would be chosen."""
    lut = _table(table, state_dir)
    if as_json:
        print_json(lut.to_json())
        return
    cap_w = checked_cap(cap_w)
    choice = _choice(lut, read_relation(relation_file), cap_w, objective, violation_probability)
    click.echo("\n".join(table_lines(lut, cap_w, None if choice is None else choice.chosen.point)))


@group.command("plot")
@click.argument("table")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The picture: .png, .svg or .pdf.",
)  # fmt: skip
@choice_options
@_state_dir
def plot(
    table: str, *, output: Path, relation_file: str | None, cap_w: float | None, objective: str,
    violation_probability: float, state_dir: Path,
) -> None:  # fmt: skip
    """Heat maps of time, power and, with --relation, time to accuracy of TABLE, with the cap line and the choice."""
    if output.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise WrongInput(f"--output: {output.name!r} must end in .png, .svg or .pdf")
    lut, relation, cap_w = _table(table, state_dir), read_relation(relation_file), checked_cap(cap_w)
    from ..plots.require import MissingPlotsError  # noqa: PLC0415  matplotlib is optional and slow to load

    choice = _choice(lut, relation, cap_w, objective, violation_probability)
    try:
        from ..plots.heatmaps import draw_lut  # noqa: PLC0415

        draw_lut(lut, output, relation=relation, cap_w=cap_w, choice=choice)
    except MissingPlotsError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{output}: cannot be written: {error.strerror or error}") from None
    click.echo(str(output))


@group.command("import")
@click.argument("file", type=click.Path())
@click.option(
    "--as-prior", is_flag=True, help="As a starting point that profiling verifies; another board's may be so."
)
@click.option("--replace", "may_replace", is_flag=True, help="Replace a table that is there already.")
@click.option("--root", default="/", show_default=True, help="Put before /proc and /etc when looking who the board is.")
@_state_dir
@click.option("--json", "as_json", is_flag=True)
def import_(file: str, *, as_prior: bool, may_replace: bool, root: str, state_dir: Path, as_json: bool) -> None:
    """Put FILE into the store, as this board's own table or, with --as-prior, as a starting point.

    A table of another board, release or power mode is refused unless --as-prior. A running service reads its tables at
    the start: restart it to use the new one.
    """
    check(file)
    lut = read_lut(file)
    identity = identify(SystemFiles(root))
    board = Board(identity.name, identity.release, identity.power_mode, ())
    if board.name == UNKNOWN:
        raise Failure(f"this board does not say what it is ({root.rstrip('/')}/proc/device-tree/model is absent): "
                      "run this on the board, or name its --root")  # fmt: skip
    if as_prior:
        name = slug(f"{lut.board} {lut.signature or lut.workload}")
        path = state_dir / "priors" / slug(board.name) / f"{name}.json"
    else:
        _refuse_foreign(file, lut, board)
        path = LutStore.place(state_dir / "lut", board, lut.signature or lut.workload)
    if path.exists() and not may_replace:
        raise WrongInput(f"{path} is there already: give --replace to replace it")
    try:
        write_atomically(path, _text(lut).encode())
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from None
    if as_json:
        print_json({"path": str(path), "kind": "prior" if as_prior else "table"})
    else:
        kind = "prior" if as_prior else "table"
        click.echo(f"{kind} kept as {path}; a running service uses it after its next start")


@group.command("export")
@click.argument("table")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: standard output.")
@_state_dir
def export(table: str, output: Path | None, state_dir: Path) -> None:
    """Write TABLE as a traingov.lut/1 file."""
    text = _text(_table(table, state_dir))
    if output is None:
        click.echo(text)
        return
    try:
        write_atomically(output, (text + "\n").encode())
    except OSError as error:
        raise Failure(f"{output}: cannot be written: {error.strerror or error}") from None


@group.command("diff")
@click.argument("old")
@click.argument("new")
@choice_options
@_state_dir
@click.option("--json", "as_json", is_flag=True)
def diff(
    old: str, new: str, *, relation_file: str | None, cap_w: float | None, objective: str,
    violation_probability: float, state_dir: Path, as_json: bool,
) -> None:  # fmt: skip
    """Relative differences from table OLD to table NEW, and whether the choice under --cap would change.

    The choice leaves predicted points out, as the service does.
    """
    tables, cap_w, relation = (
        [_table(old, state_dir), _table(new, state_dir)],
        checked_cap(cap_w),
        read_relation(relation_file),
    )
    difference = lut_difference(*tables)
    if not any(grid.cells for grid in difference.grids):
        raise WrongInput(f"{old} and {new} have no point in common")
    points = [
        None if choice is None else choice.chosen.point
        for choice in (_choice(lut, relation, cap_w, objective, violation_probability) for lut in tables)
    ]
    boards = [lut.board for lut in tables]
    if as_json:
        print_json({
            **{grid.quantity: grid.to_json() for grid in difference.grids},
            "only_old": difference.only_old, "only_new": difference.only_new, "boards": boards,
            "choices": [None if p is None else vars(p) for p in points], "choice_changes": points[0] != points[1],
        })  # fmt: skip
        return
    if boards[0] != boards[1]:
        click.echo(f"two boards: {boards[0]} and {boards[1]}")
    click.echo("\n".join(difference_lines(difference)))
    under = "without a cap" if cap_w is None else f"under {cap_w:g} W"
    if points[0] == points[1]:
        click.echo(f"the choice {under} stays {points[0] or 'none'}")
    else:
        click.echo(f"the choice {under} changes from {points[0] or 'none'} to {points[1] or 'none'}")


@group.command("forget")
@click.argument("table")
@_state_dir
@click.option("--json", "as_json", is_flag=True)
def forget(table: str, state_dir: Path, as_json: bool) -> None:
    """Take TABLE out of the store, so that its workload is profiled anew; a copy stays in STATE/forgotten.

    A running service holds its tables in memory: restart it to have it forget too.
    """
    entry = _own_entry(table, state_dir)
    # Its place below STATE is kept, so that moving the copy back is all it takes.
    kept = state_dir / "forgotten" / entry.path.relative_to(state_dir)
    number = next(n for n in range(1, 10_000) if not kept.with_name(f"{kept.stem}.{n}.json").exists())
    kept = kept.with_name(f"{kept.stem}.{number}.json")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        entry.path.rename(kept)
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror or error}") from None
    if as_json:
        print_json({"forgotten": str(entry.path), "kept_as": str(kept)})
    else:
        click.echo(f"forgot {entry.path}, kept as {kept}; a running service forgets it at its next start")


def _own_entry(name: str, state_dir: Path) -> Entry:
    """The file of this machine's store that ``name`` means: its path, signature or workload. Raises WrongInput."""
    own = [e for e in entries(state_dir) if e.kind != "shipped"]
    found = [e for e in own if Path(name).absolute() == e.path.absolute()] or [e for e in own if e.signature == name]
    found = found or [e for e in own if e.lut is not None and e.lut.workload == name]
    if not found:
        raise WrongInput(f"no table {name!r} in {state_dir}; `traingov lut list` shows what there is")
    if len(found) > 1:
        raise WrongInput(f"{len(found)} tables are called {name!r}; give the file of one: {_paths(found)}")
    return found[0]


def _choice(
    lut: Lut, relation: RelationVector | None, cap_w: float | None, objective: str, violation_probability: float
) -> Choice | None:
    """What the service would choose from ``lut``; None where the table leaves nothing to choose."""
    try:
        return choose(
            lut, relation, cap_w, Objective(objective), violation_probability=violation_probability, measured_only=True
        )
    except ValueError:
        return None


def _table(name: str, state_dir: Path) -> Lut:
    """The table in the file ``name``, or the one of the store with this signature, workload or path."""
    if "/" in name or name.endswith(".json") or Path(name).is_file():
        return read_lut(name)
    found = [e for e in entries(state_dir) if e.lut is not None and name in (e.signature, e.lut.workload)]
    exact = [e for e in found if e.signature == name and e.kind == "table"] or found
    if not exact:
        raise WrongInput(f"no table {name!r} in {state_dir}, and no such file; `traingov lut list` shows what there is")
    if len(exact) > 1:
        raise WrongInput(f"{len(exact)} tables are called {name!r}; give the file of one: {_paths(exact)}")
    assert exact[0].lut is not None
    return exact[0].lut


def _paths(found: list[Entry]) -> str:
    return ", ".join(str(entry.path) for entry in found)


def _refuse_foreign(file: str, lut: Lut, board: Board) -> None:
    """Raises WrongInput for a table that was not measured on this board, release and power mode."""
    for what, theirs, ours in (
        ("board", lut.board, board.name),
        ("release", lut.release, board.release),
        ("power mode", lut.power_mode, board.power_mode),
    ):
        if theirs != ours:
            stated = "does not state its " + what if theirs is None else f"is of {what} {theirs!r}"
            raise WrongInput(f"{file}: {stated}, this is {ours!r}: import it with --as-prior, and it is verified first")


def _text(lut: Lut) -> str:
    return json.dumps(lut.to_json(), indent=1, ensure_ascii=False)
