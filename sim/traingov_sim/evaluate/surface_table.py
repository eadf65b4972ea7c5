"""``python -m traingov_sim.evaluate.surface_table nano digits-mlp``: a virtual board's surface as a lookup table.

Free of noise, with the times and powers that the virtual board runs by: what other tools need of a board (the proxy's
sensitivity matrix) in a file, so that they need not import the simulation.
"""

from __future__ import annotations

import json

import click

from traingov_policies.lut import Grid, Lut

from ..surfaces import CLOCKS_HZ, GeneratedSurface, load
from ..surfaces.generator import step

WINDOW_S = 1.0
"""Of the cap, and so of peak power (DESIGN 5.4)."""


def table(
    surface: GeneratedSurface, batch_sizes: tuple[int, ...], clocks_hz: tuple[int, ...], samples: int = 4096
) -> Lut:
    """The lookup table of ``surface`` over ``batch_sizes`` and ``clocks_hz``; times are for ``samples`` samples."""
    steps = [
        [
            step(surface.parameters, float(b), f / surface.max_frequency_hz, surface.irregularities.get(f, 1.0))
            for f in clocks_hz
        ]
        for b in batch_sizes
    ]
    seconds: Grid = tuple(
        tuple(float(s.time_s()) * samples / b for s in row) for b, row in zip(batch_sizes, steps, strict=True)
    )
    return Lut(
        surface.board,
        surface.workload,
        samples,
        batch_sizes,
        clocks_hz,
        seconds,
        tuple(tuple(float(s.peak_input_w(WINDOW_S)) for s in row) for row in steps),
        tuple(tuple(float(s.mean_input_w()) for s in row) for row in steps),
        {"kind": "simulated", "noise": "none"},
    )


@click.command()
@click.argument("board")
@click.argument("workload")
@click.option("--batch-sizes", default="4,8,16,32,64,128", show_default=True)
def command(board: str, workload: str, batch_sizes: str) -> None:
    """Print traingov.lut/1 of a virtual board's surface."""
    try:
        sizes = tuple(sorted({int(b) for b in batch_sizes.split(",")}))
        lut = table(load(board, workload), sizes, tuple(sorted(CLOCKS_HZ[board])))
    except (ValueError, KeyError) as error:
        raise click.UsageError(f"{board}/{workload}: {error}") from None
    click.echo(json.dumps(lut.to_json(), indent=1))


if __name__ == "__main__":
    command()
