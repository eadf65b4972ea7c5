"""The energy policy in pseudo-time: tree, search, budget, cap, slowdown limit, lengths, what is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench import CLOCKS, Bench, power_w, step_s
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from traingov_policies.actions import AdviseBatch, PersistCurve, SetGpuBounds
from traingov_policies.codec import decode_event, decode_header, encode, encode_action, encode_event
from traingov_policies.events import KnobReadBack, Sample, StepsReported
from traingov_policies.governor import Governor
from traingov_policies.invariants import violations
from traingov_policies.search.curves import Curve
from traingov_policies.search.options import SearchSettings
from traingov_policies.settings import Settings
from traingov_policies.tree import Tree
from traingov_policies.values import Cap, Features, Objective, PolicyName

TREE = Tree.from_json(json.loads((Path(__file__).parents[3] / "etc/trees/algorithm-1.json").read_text()))
LARGE = Features(layers=24, seq_len_avg=80.0)  # 816 of 1300.5 MHz: 614.4 MHz on this table
TREE_HZ = 614_400_000
BATCH = 32


def settings(**search: object) -> Settings:
    return Settings(policy=PolicyName.ENERGY, tree=TREE, search=SearchSettings(**search))  # type: ignore[arg-type]


def energy_j(hz: int, power: Callable[[int, int], float] = power_w) -> float:
    """Compute energy per sample on the bench, which shows half of the power as compute power."""
    return power(BATCH, hz) / 2 * step_s(BATCH, hz) / BATCH


def interior(batch: int, hz: int) -> float:
    """A board whose energy per step is least at 384 MHz, whatever the step takes."""
    shape = 1 + 0.6 * np.log(hz / 384e6) ** 2
    return float(6.0 * shape * step_s(BATCH, 384_000_000) / step_s(BATCH, hz))


def by_curve(relative: dict[int, float]) -> Callable[[int, int], float]:
    """Power under which a step at clock f costs ``relative[f]`` times a fixed energy."""
    return lambda batch, hz: 0.3 * relative.get(hz, 1.0) / step_s(BATCH, hz)


def searched(bench: Bench, seconds: float = 200, **more: object) -> Bench:
    bench.register(features=LARGE, **more)
    return bench.run(seconds)


def test_the_search_begins_at_the_trees_clock_and_ends_near_the_best() -> None:
    bench = searched(Bench(settings(), power=interior))
    assert bench.of(SetGpuBounds)[0].max_hz == TREE_HZ
    assert len(bench.texts("tree")) == 1
    best = min(energy_j(f, interior) for f in CLOCKS)
    assert energy_j(bench.bounds[1], interior) < 1.005 * best
    assert bench.of(AdviseBatch)[-1].phase == "train"
    assert {a.batch_size for a in bench.of(AdviseBatch)} == {BATCH}
    assert len(bench.texts("searched")) == 1
    assert bench.governor.snapshot()["state"] == "searching"


def test_the_readings_are_the_true_energies_of_their_clocks() -> None:
    bench = searched(Bench(settings(), power=interior))
    curve = bench.of(PersistCurve)[-1].curve
    assert len(curve.gpu_frequencies_hz) >= 3
    for hz, compute, both, time in zip(
        curve.gpu_frequencies_hz, curve.compute_energy_j, curve.input_energy_j, curve.time_s, strict=True
    ):
        assert compute == pytest.approx(energy_j(hz, interior), rel=0.01)
        assert both == pytest.approx(2 * energy_j(hz, interior), rel=0.01)
        assert time == pytest.approx(step_s(BATCH, hz) / BATCH, rel=0.01)
    assert curve.tree_frequency_hz == TREE_HZ
    assert curve.best_frequency_hz == bench.bounds[1]
    assert curve.gpu_utilization == pytest.approx(90.0)
    assert curve.reference_time_s == pytest.approx(step_s(BATCH, CLOCKS[-1]) / BATCH, rel=0.01)


def test_a_tree_that_is_right_already_is_kept() -> None:
    flat = by_curve({f: 1.0 if f == TREE_HZ else 1.05 for f in CLOCKS})
    bench = searched(Bench(settings(), power=flat))
    assert bench.bounds[1] == TREE_HZ


def test_the_objective_edp_prefers_a_faster_clock_and_a_jobs_own_wish_goes_first() -> None:
    energy = searched(Bench(settings(), power=interior)).bounds[1]
    edp = searched(Bench(settings(objective=Objective.EDP), power=interior)).bounds[1]
    own = searched(Bench(settings(), power=interior), objective=Objective.EDP).bounds[1]
    assert edp > energy
    assert own == edp


def test_a_slowdown_limit_is_kept_and_the_rest_of_the_room_is_used() -> None:
    limit = 1.6
    bench = searched(Bench(settings(slowdown_limit=limit), power=interior), 300)
    reference = step_s(BATCH, CLOCKS[-1])
    fast = [f for f in CLOCKS if step_s(BATCH, f) <= limit * reference]
    assert bench.bounds[1] in fast
    assert energy_j(bench.bounds[1], interior) < 1.02 * min(energy_j(f, interior) for f in fast)


def test_a_slowdown_limit_that_forbids_the_trees_clock_moves_the_start() -> None:
    bench = searched(Bench(settings(slowdown_limit=1.2), power=interior), 300)
    assert step_s(BATCH, bench.bounds[1]) <= 1.2 * step_s(BATCH, CLOCKS[-1])
    assert any("the slowdown limit forbids the tree's clock" in text for text in bench.texts("search"))


def test_under_a_cap_no_probe_aims_at_a_clock_that_would_break_it() -> None:
    cap = Cap(power_w(BATCH, TREE_HZ) + 0.1)
    bench = searched(Bench(settings(objective=Objective.EDP), cap=cap), 300)  # faster clocks would be better
    first = next(t for t, e in bench.log if isinstance(e, SetGpuBounds) and e.max_hz == TREE_HZ)
    above = [(t, e.input_power_w) for t, e in bench.log if isinstance(e, Sample) and t > first + 3]
    assert max(w for _, w in above) < cap.power_w
    assert bench.governor.snapshot()["guard_steps_down"] <= 6


def test_a_cap_lowered_in_mid_search_is_kept_by_the_guard_and_the_search_goes_on_below_it() -> None:
    bench = searched(Bench(settings(), power=power_w), 25)
    bench.set_cap(Cap(3.4))
    bench.run(300)
    late = [e.input_power_w for t, e in bench.log if isinstance(e, Sample) and t > bench.now - 60]
    assert np.mean(late) < 3.4
    entries = [{"schema": "traingov.recording/1", "board": encode(bench.board), "settings": {}, "cap": None}]
    entries += [encode_event(e) if hasattr(e, "t_s") else encode_action(e) for _, e in bench.log]
    bench.end()
    assert [v for v in violations(entries) if "given back" not in v] == []


def test_a_clock_that_the_kernel_snaps_is_left_out_and_the_search_goes_on() -> None:
    class Snapping(Bench):
        def _write(self, low: int, high: int) -> None:
            if high != 384_000_000:
                super()._write(low, high)
                return
            self.bounds = (460_800_000, 460_800_000)
            self.feed(KnobReadBack(self.now, low, high, *self.bounds))

    bench = searched(Snapping(settings(), power=interior), 300)
    assert bench.bounds[1] != 384_000_000
    assert any("the kernel set 460.8 MHz instead" in text for text in bench.texts("measurement-invalid"))
    assert bench.texts("searched")


def test_without_compute_power_the_trees_clock_is_held_and_the_reason_said() -> None:
    bench = Bench(settings(window_most_s=5.0))
    bench.register(features=LARGE)
    bench.run(5)
    bench.rails_on = False
    bench.run(60)
    assert bench.governor.snapshot()["state"] == "holding"
    assert bench.bounds[1] == TREE_HZ
    assert "no reading of compute power" in bench.texts("tree")[-1]


def test_input_energy_can_be_what_counts() -> None:
    bench = searched(Bench(settings(power="input"), power=interior))
    assert "mJ a sample" in bench.texts("search-reading")[0]
    best = min(energy_j(f, interior) for f in CLOCKS)
    assert energy_j(bench.bounds[1], interior) < 1.005 * best


def test_a_short_job_is_not_probed_at_all() -> None:
    bench = searched(Bench(settings(), power=interior), samples_total=9_000)
    assert {a.max_hz for a in bench.of(SetGpuBounds)} == {TREE_HZ}


def remembered(bench: Bench) -> Curve:
    return bench.of(PersistCurve)[-1].curve


def test_a_known_workload_skips_the_reference_and_verifies_its_best_first() -> None:
    first = searched(Bench(settings(), power=interior))
    again = Bench(settings(), power=interior)
    searched(again, 200, remembered=(remembered(first),))
    writes = [a.max_hz for a in again.of(SetGpuBounds)]
    assert writes[:2] == [TREE_HZ, first.bounds[1]]
    assert again.bounds[1] == first.bounds[1]
    begun = next(t for t, e in again.log if isinstance(e, SetGpuBounds))
    assert begun - 100.0 < 0.5
    assert len(again.texts("search-reading")) < len(first.texts("search-reading"))


def test_a_remembered_best_that_is_wrong_now_is_found_out() -> None:
    first = searched(Bench(settings(), power=interior))
    other = by_curve({f: 1 + 0.5 * np.log(f / 691.2e6) ** 2 for f in CLOCKS})
    again = searched(Bench(settings(), power=other), 300, remembered=(remembered(first),))
    best = min(energy_j(f, other) for f in CLOCKS)
    assert energy_j(again.bounds[1], other) < 1.02 * best


def test_other_jobs_curves_save_probes() -> None:
    first = searched(Bench(settings(probes_most=6), power=interior), 300)
    curves = tuple(
        Curve("nano", f"w{k}", BATCH, CLOCKS, tuple((1 + k / 10) * energy_j(f, interior) for f in CLOCKS),
              (None,) * 12, tuple(step_s(BATCH, f) for f in CLOCKS), (0.01,) * 12, TREE_HZ, TREE_HZ)
        for k in range(5)
    )  # fmt: skip
    second = searched(Bench(settings(probes_most=6), power=interior), 300, curves=curves)
    assert len(second.texts("search-reading")) < len(first.texts("search-reading"))
    assert second.bounds[1] == 384_000_000


class Reading(Bench):
    """A bench whose job reports a mean sequence length."""

    length = 80.0

    def feed(self, event: object) -> None:
        if isinstance(event, StepsReported):
            event = StepsReported(**{**vars(event), "seq_len_avg": self.length})
        super().feed(event)  # type: ignore[arg-type]


def test_the_tree_is_asked_again_when_the_data_changed_and_not_before() -> None:
    bench = Reading(settings(length_period_s=20.0))
    searched(bench, 100)
    bench.length = 55.0  # on the same side of the threshold, within the margin of it
    bench.run(200)
    assert len(bench.texts("tree")) == 1
    bench.length = 30.0
    bench.run(200)
    tree = bench.texts("tree")
    assert len(tree) == 2
    assert "the mean sequence length is 30 now" in tree[1]


def test_another_batch_size_begins_the_readings_anew() -> None:
    bench = Bench(settings(), power=interior)
    job = bench.register(features=LARGE)
    bench.run(30)
    job.batch = 16
    bench.run(200)
    assert any("batch size is 16 now" in text for text in bench.texts("search"))
    assert remembered(bench).batch_size == 16


def test_a_settled_search_is_looked_at_again_and_follows_a_curve_that_changed() -> None:
    bench = searched(Bench(settings(again_s=100.0, probes_most=4), power=interior), 150)
    settled = bench.bounds[1]
    bench.power = by_curve({f: 1 + 0.8 * np.log(f / 691.2e6) ** 2 for f in CLOCKS})
    bench.run(1500)
    assert bench.bounds[1] > settled
    assert len(bench.texts("searched")) >= 2


def extra_j(bench: Bench, power: Callable[[int, int], float]) -> tuple[float, float]:
    """What the job drew more than at the tree's clock (compute joules), and all that it drew, once the tree had spoken.

    From the bench's own truth, sample by sample; samples trained are counted by time at each clock.
    """
    begun = next(t for t, e in bench.log if isinstance(e, SetGpuBounds))
    extra = total = 0.0
    last: tuple[float, int] | None = None
    for t, entry in bench.log:
        if not isinstance(entry, Sample) or t < begun + 1.0:
            continue
        if last is not None:
            elapsed, hz = t - last[0], last[1]
            drawn = power(BATCH, hz) / 2 * elapsed
            total += drawn
            extra += drawn - elapsed / step_s(BATCH, hz) * BATCH * energy_j(TREE_HZ, power)
        assert entry.gpu_frequency_hz is not None
        last = (t, entry.gpu_frequency_hz)
    return extra, total


@hypothesis_settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.3, 20.0), min_size=12, max_size=12))
def test_on_any_curve_the_search_never_costs_more_than_its_bound(relative: list[float]) -> None:
    curve = dict(zip(CLOCKS, relative, strict=True))
    power = by_curve({**curve, TREE_HZ: 1.0})
    s = settings()
    bench = Bench(s, power=power)
    bench.register(features=LARGE)
    bench.run(120)
    extra, total = extra_j(bench, power)
    tree_w = power(BATCH, TREE_HZ) / 2
    worst_w = max(power(BATCH, f) for f in CLOCKS) / 2
    # The bound of docs/energy.md: the share, the seconds, and the way back at the worst clock's power.
    way_back_s = bench.knob_delay_s + bench.switch_delay_s + 0.1
    stays = 1 + len(bench.texts("search-stopped"))
    assert extra <= s.search.loss_share * total + s.search.loss_s * tree_w + stays * way_back_s * worst_w


def test_a_terrible_clock_is_left_before_its_reading_is_over() -> None:
    awful = by_curve({f: 1.0 if f == TREE_HZ else 15.0 for f in CLOCKS})
    bench = searched(Bench(settings(), power=awful), 60)
    assert bench.texts("search-stopped")
    assert bench.bounds[1] == TREE_HZ


def test_a_recording_of_a_search_replays_to_the_same_actions() -> None:
    curve = remembered(searched(Bench(settings(), power=interior)))
    bench = searched(Bench(settings(), power=interior), 120, remembered=(curve,), curves=(curve,))
    header = {"schema": "traingov.recording/1", "board": encode(bench.board), "settings": encode(bench.settings),
              "cap": None}  # fmt: skip
    fresh = Governor(*decode_header(json.loads(json.dumps(header))))
    expected: list[object] = []
    produced: list[object] = []
    for _, entry in bench.log:
        if hasattr(entry, "t_s"):
            event = decode_event(json.loads(json.dumps(encode_event(entry))))
            produced += [encode_action(a) for a in fresh.handle(event)]
        else:
            expected.append(encode_action(entry))
    assert produced == expected


class Pausing(Bench):
    """A bench whose job evaluates for ``pause_s`` now and then: no steps, full power."""

    pause_s = 45.0
    every_s = 60.0

    def _step(self, job: object, stops: int = 0) -> None:
        if self.now % (self.every_s + self.pause_s) >= self.every_s:
            wait = self.pause_s - (self.now % (self.every_s + self.pause_s) - self.every_s)
            job.step_begin = self.now + wait  # type: ignore[attr-defined]
            self._at(self.now + wait + 0.05, lambda: super(Pausing, self)._step(job, stops))  # type: ignore[arg-type]
            return
        super()._step(job, stops)  # type: ignore[arg-type]


def test_a_job_that_pauses_to_evaluate_is_searched_all_the_same() -> None:
    bench = searched(Pausing(settings(), power=interior), 600)
    best = min(energy_j(f, interior) for f in CLOCKS)
    assert bench.texts("searched")
    assert energy_j(bench.bounds[1], interior) < 1.01 * best
    assert bench.texts("search-stopped") == []


def test_a_cap_that_is_lifted_gives_the_trees_clock_back_as_the_start() -> None:
    bench = searched(Bench(settings(), cap=Cap(3.0)), 200)
    assert bench.bounds[1] < TREE_HZ
    bench.power = interior
    bench.set_cap(None)
    bench.run(300)
    best = min(energy_j(f, interior) for f in CLOCKS)
    assert energy_j(bench.bounds[1], interior) < 1.03 * best
