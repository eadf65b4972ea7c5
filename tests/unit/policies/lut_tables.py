"""Random tables and relation vectors, for tests of the choice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector

MAYBE = st.one_of(st.none(), st.integers(1, 12).map(lambda n: n / 2))


@st.composite
def tables(draw: st.DrawFn) -> Lut:
    batches = sorted(draw(st.sets(st.sampled_from([1, 2, 4, 8, 16, 32]), min_size=1)))
    clocks = sorted(draw(st.sets(st.integers(1, 12).map(lambda k: k * 76_800_000), min_size=1)))

    def grid() -> tuple[tuple[float | None, ...], ...]:
        return tuple(tuple(draw(MAYBE) for _ in clocks) for _ in batches)

    return Lut("nano", "w", 4096, tuple(batches), tuple(clocks), grid(), grid(), grid())


@st.composite
def tables_with_relation(draw: st.DrawFn) -> tuple[Lut, RelationVector | None]:
    lut = draw(tables())
    if draw(st.booleans()):
        return lut, None
    values = [draw(st.one_of(st.none(), st.sampled_from([0.25, 0.5, 1.0]))) for _ in lut.batch_sizes]
    if all(v is None for v in values):
        return lut, None
    return lut, RelationVector("w", lut.batch_sizes, tuple(values))


@st.composite
def uncertain(draw: st.DrawFn) -> tuple[Lut, RelationVector | None]:
    """As ``tables_with_relation``, with standard deviations, origins and intervals, each present or not."""
    lut, relation = draw(tables_with_relation())
    share = st.one_of(st.none(), st.sampled_from([0.0, 0.01, 0.05, 0.2]))

    def std(grid: tuple[tuple[float | None, ...], ...]) -> tuple[tuple[float | None, ...], ...]:
        return tuple(tuple(None if v is None or (s := draw(share)) is None else v * s for v in row) for row in grid)

    origins = st.sampled_from(["measured", "measured", "predicted", None])
    lut = replace(
        lut,
        time_std_s=std(lut.time_s) if draw(st.booleans()) else None,
        power_std_w=std(lut.peak_power_w) if draw(st.booleans()) else None,
        origin=tuple(tuple(draw(origins) for _ in row) for row in lut.time_s) if draw(st.booleans()) else None,
    )
    if relation is not None and draw(st.booleans()):
        interval = tuple((None, None) if r is None else (0.9 * r, 1.1 * r) for r in relation.relative_samples)
        relation = replace(relation, interval=interval)
    return lut, relation
