"""The sweep on the twin of a family's board: what telemetry makes of it, against the surface's own curve."""

import pytest

from traingov_policies.actions import PersistSweep
from traingov_policies.events import SweepRequested
from traingov_policies.settings import Settings
from traingov_policies.sweeping import SAMPLES
from traingov_policies.values import Features, PolicyName
from traingov_sim.board.boardspec import load_board
from traingov_sim.surfaces.orin_family import load_orin_family
from traingov_sim.surfaces.orin_pairs import CLOCKS
from traingov_sim.twin import Twin, settings_for

MEMBER = 7
SOME = (CLOCKS[1], CLOCKS[4], CLOCKS[7], CLOCKS[10])


@pytest.mark.parametrize("pair", ["bert-base/qqp", "bert-small/mrpc"])
def test_a_sweep_measures_the_curve_through_noisy_lagging_sensors(pair):
    family, spec = load_orin_family(), load_board("agx-orin")
    twin = Twin(spec, settings_for(spec, Settings(policy=PolicyName.OBSERVE)), seed=2, interval_s=0.1)
    twin.add_job(family.surface(pair, MEMBER), (32,), features=Features("bert", 12, 768, 30.0))
    twin.run(3.0)
    twin.feed(SweepRequested(twin.t_s, "job", SOME, 15.0))
    twin.run(200.0, until=lambda t: t.governor.sweep.state == "finished")
    (*_, last) = twin.of(PersistSweep)
    truth = family.curves(pair)
    measured = {row.gpu_frequency_hz: row for row in last.rows}
    assert set(measured) == {None, *SOME}
    for hz in SOME:
        i = CLOCKS.index(hz)
        assert measured[hz].time_s == pytest.approx(truth.time_s[MEMBER, i] * SAMPLES / 32, rel=0.02)
        # Warmth adds leakage, and tegrastats' figures are rounded: a few percent at low power.
        assert measured[hz].compute_energy_j == pytest.approx(truth.compute_j[MEMBER, i] * SAMPLES / 32, rel=0.08)
        assert measured[hz].gpu_utilization == pytest.approx(truth.utilization[MEMBER, i], abs=6)
    by_energy = min(SOME, key=lambda hz: measured[hz].compute_energy_j)
    best = truth.compute_j[MEMBER, [CLOCKS.index(hz) for hz in SOME]].min()
    assert truth.compute_j[MEMBER, CLOCKS.index(by_energy)] <= 1.01 * best
