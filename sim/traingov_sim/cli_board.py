"""``traingov-sim board``: run a virtual Jetson until it is stopped."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from .board.boardspec import board_names
from .gpu import ENVIRONMENT
from .kernel.tree import FolderTree
from .machine.process import BoardPaths, TreeMaker, run_board


@click.command("board")
@click.option("--board", "name", default="nano", show_default=True, help=f"Which: {', '.join(board_names())}.")
@click.option("--dir", "directory", type=click.Path(path_type=Path, file_okay=False), help="Folder for its files.")
@click.option("--seed", default=0, show_default=True, help="Seed of its noise, stalls and wander.")
@click.option("--fuse", is_flag=True, help="Mount the tree with FUSE: writes are carried out at once, and can fail.")
@click.option("--with-parent", is_flag=True, help="End when the process that started it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the paths as one line of JSON.")
def command(  # noqa: PLR0917  (click passes them by name)
    name: str, directory: Path | None, seed: int, fuse: bool, with_parent: bool, as_json: bool
) -> None:
    """Run a virtual Jetson: its tree of kernel files, its tegrastats, its GPU. Stop it with Ctrl-C."""
    try:
        run_board(
            name,
            directory,
            seed=seed,
            make_tree=_fuse_tree() if fuse else FolderTree,
            parent_pid=os.getppid() if with_parent else None,
            announce=None if as_json else _explain,
        )
    except (ValueError, OSError, RuntimeError) as error:
        print(f"traingov-sim board: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 1)


def _fuse_tree() -> TreeMaker:
    from .kernel.fusefs import unavailable  # noqa: PLC0415
    from .kernel.fusetree import FuseTree  # noqa: PLC0415

    reason = unavailable()
    if reason is not None:
        raise ValueError(f"--fuse: {reason}")
    return FuseTree


def _explain(paths: BoardPaths) -> None:
    print(f"Virtual {paths.board} running (process {paths.pid}). Every reading is simulated.\n")
    print("traingovd.yaml for it:")
    print(f"  root: {json.dumps(paths.root)}")
    print(f"  tegrastats: {json.dumps(paths.tegrastats)}\n")
    print("A training script finds its GPU with:")
    print(f"  export {ENVIRONMENT}={paths.gpu}", flush=True)
