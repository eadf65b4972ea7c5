"""What an explanation claims is true: each claim is tried by choosing again under the circumstances it names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bench import Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from lut_tables import uncertain

from traingov_policies.actions import Decided
from traingov_policies.context import Context, Job
from traingov_policies.events import JobRegistered
from traingov_policies.explaining import detail, selection_json
from traingov_policies.guard import Guard
from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_policies.robust import Choice, choose
from traingov_policies.settings import Settings
from traingov_policies.states.joint import Joint
from traingov_policies.values import Board, Cap, Objective, OperatingPoint, PolicyName
from traingov_policies.wording import headline, sentences

CAPS = st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.5, 4.0, 9.0]))


def explained(lut: Lut, relation: RelationVector | None, cap: float | None, objective=Objective.TIME, **more):
    choice = choose(lut, relation, cap, objective, **more)
    return choice, detail(choice, lut, relation, batch_sizes=lut.batch_sizes)


def place(entry) -> OperatingPoint:
    return OperatingPoint(**entry["point"])


def of(why, key: str, what: str, name: str = "what"):
    return next((e for e in why[key] if e[name] == what), None)


@settings(deadline=None, max_examples=150)
@given(uncertain(), CAPS, st.sampled_from(Objective))
def test_claims_about_other_caps_hold_when_tried(pair, cap, objective) -> None:
    lut, relation = pair
    try:
        choice, why = explained(lut, relation, cap, objective)
    except ValueError:
        return

    def again(cap_w: float | None) -> Choice:
        return choose(lut, relation, cap_w, objective)

    json.dumps(why, allow_nan=False)
    texts = sentences(why)
    assert all("None" not in text and "nan" not in text and text.endswith(".") for text in texts)
    if up := of(why, "changes", "cap-up"):
        above = again(up["cap_w"] + 1e-6).selection
        assert above.feasible
        assert above.chosen.point == place(up)
        if choice.selection.feasible and up["cap_w"] - cap > 1e-6:
            assert again(up["cap_w"] - 1e-7).chosen.point == choice.chosen.point
    elif cap is not None and choice.selection.feasible:
        assert again(1e4).chosen.point == choice.chosen.point
    if down := of(why, "changes", "cap-down"):
        if down["cap_w"] > 0.01:
            below = again(down["cap_w"] - 1e-9).selection
            assert below.feasible == (down["point"] is not None)
            if below.feasible:
                assert below.chosen.point == place(down)
        if cap is None or cap - down["cap_w"] > 1e-6:
            assert again(down["cap_w"] + 1e-7).chosen.point == choice.chosen.point
    if bound := of(why, "bound", "cap", "by"):
        assert again(None).chosen.point == place(bound) != choice.chosen.point
    elif choice.selection.feasible:
        assert again(None).chosen.point == choice.chosen.point
    if bound := of(why, "bound", "relation", "by"):
        assert choose(lut, None, cap, objective).chosen.point == place(bound) != choice.chosen.point


@settings(deadline=None, max_examples=150)
@given(uncertain(), CAPS, st.sampled_from(Objective))
def test_the_change_of_r_that_is_named_is_where_the_other_batch_size_wins(pair, cap, objective) -> None:
    lut, relation = pair
    if relation is None:
        return
    # Intervals are left out: an interval that does not move with r would change the expectation of its square.
    relation = replace(relation, interval=None)
    try:
        choice, why = explained(lut, relation, cap, objective)
    except ValueError:
        return
    change = of(why, "changes", "relation")
    if change is None:
        return
    chosen = choice.chosen.point.batch_size
    for factor, winner in ((1 - 1e-6, choice.chosen.point), (1 + 1e-6, place(change))):
        share = (1 + change["more_samples"]) * factor
        values = [
            None if r is None else r * (share if b == chosen else 1.0)
            for b, r in zip(relation.batch_sizes, relation.relative_samples, strict=True)
        ]
        largest = max(v for v in values if v is not None)
        scaled = replace(relation, relative_samples=tuple(None if v is None else v / largest for v in values))
        if change["more_samples"] > 1e-5:
            assert choose(lut, scaled, cap, objective).chosen.point == winner


STD = 0.02
TABLE = Lut(
    "nano", "w", 64, (8, 16), (100_000_000, 200_000_000, 300_000_000),
    ((40.0, 22.0, 14.0), (30.0, 16.0, 11.0)), ((2.0, 3.0, 4.0), (3.0, 4.0, 5.0)), ((1.8, 2.7, 3.6), (2.7, 3.6, 4.5)),
    time_std_s=((STD * 40, STD * 22, STD * 14), (STD * 30, STD * 16, STD * 11)), power_std_w=((0.03,) * 3,) * 2,
)  # fmt: skip
RELATION = RelationVector("w", (8, 16), (0.8, 1.0), interval=((0.76, 0.84), (0.95, 1.05)))


def test_the_words_name_the_choice_the_second_the_cap_and_what_would_change_it() -> None:
    _, why = explained(TABLE, RELATION, 4.5)
    text = "\n".join(sentences(why))
    assert "Chosen: batch 8 at 300 MHz, the least time to accuracy of 5 points that stay below 4.5 W (6 looked" in text
    assert "Its peak power is 4.00 W, 0.50 W below the cap" in text
    # 16·1.0 / (14·0.8) = 1.4286; its spread: 2 % of each time, 2.55 % of each r.
    assert "Second: batch 16 at 200 MHz, 42.9 ± 6.5 % more time" in text
    assert "The cap binds: without it, it would be batch 16 at 300 MHz (1.8 % less time), which draws 5.00 W." in text
    assert "At a cap above 5.05 W it would be batch 16 at 300 MHz" in text  # 5 W + 1.645 · 0.03 W
    assert "At a cap of 4.04 W or less it would be batch 8 at 200 MHz (57.1 % more time)." in text
    assert "If batch 8 needed 42.9 % more samples than the relation vector says, batch 16 at 200 MHz would win." in text
    assert "The relation vector decides" not in text


def test_of_two_second_places_the_clock_of_the_same_batch_is_compared_without_the_spread_of_r() -> None:
    lut = replace(TABLE, time_s=((40.0, 15.0, 14.0), (30.0, 16.0, 11.0)))
    _, why = explained(lut, RELATION, 4.5)
    assert place(why["second"]) == OperatingPoint(8, 200_000_000)
    assert why["second"]["more"] == pytest.approx(15 / 14 - 1)
    spread = ((STD * 22 / 15) ** 2 + STD**2) ** 0.5
    assert why["second"]["more_std"] == pytest.approx(15 / 14 * spread)
    assert place(why["second_batch"]) == OperatingPoint(16, 200_000_000)
    assert any("Best with another batch size: batch 16 at 200 MHz" in text for text in sentences(why))


def test_a_point_refused_for_its_uncertainty_is_named_with_its_chance() -> None:
    _, why = explained(TABLE, None, 4.03)  # batch 8 at 300 MHz and batch 16 at 200 MHz: 4.00 ± 0.03 W
    bound = of(why, "bound", "uncertainty", "by")
    assert place(bound) == OperatingPoint(8, 300_000_000)
    assert bound["violation_probability"] == pytest.approx(0.1587, abs=1e-4)
    text = "\n".join(sentences(why))
    assert (
        "is below the cap by its table value, but it exceeds the cap with 15.9 % probability; less than 5.0 %" in text
    )


def test_for_energy_times_time_the_named_change_of_r_counts_twice() -> None:
    relation = RelationVector("w", (8, 16), (0.8, 1.0))
    choice, why = explained(TABLE, relation, 4.5, Objective.EDP)
    change = of(why, "changes", "relation")
    assert (choice.chosen.point.batch_size, change["point"]["batch_size"]) == (8, 16)
    for factor, winner in ((0.999, 8), (1.001, 16)):
        r = 0.8 * (1 + change["more_samples"]) * factor
        scaled = RelationVector("w", (8, 16), (r / max(r, 1.0), 1.0 / max(r, 1.0)))
        assert choose(TABLE, scaled, 4.5, Objective.EDP).chosen.point.batch_size == winner


def test_caps_are_rounded_to_the_side_on_which_the_sentence_stays_true() -> None:
    peaks = ((2.0, 3.0, 4.0061), (3.0, 4.0, 5.0011))
    _, why = explained(replace(TABLE, peak_power_w=peaks, power_std_w=None), RELATION, 4.5)
    text = "\n".join(sentences(why))
    assert "At a cap above 5.01 W" in text
    assert "At a cap of 4.00 W or less" in text


def test_what_was_assumed_is_said() -> None:
    bare = replace(TABLE, time_std_s=None, power_std_w=None)
    text = "\n".join(sentences(explained(bare, None, 4.5)[1]))
    for said in ("No relation vector", "no uncertainty of power", "no uncertainty of time"):
        assert said in text
    origin = (("measured", "predicted", "failed"), ("measured", "infeasible", None))
    times = ((40.0, 20.0, None), (30.0, None, None))
    table = replace(TABLE, origin=origin, time_s=times)
    text = "\n".join(sentences(explained(table, replace(RELATION, interval=None), 4.5)[1]))
    for said in (
        "1 point predicted by a model: taken as candidates", "1 point given up", "1 point could not be measured",
        "1 point never measured", "states no interval",
    ):  # fmt: skip
        assert said in text
    assert "The point is predicted, not measured" in text
    partial = RelationVector("w", (4, 32), (0.8, 1.0))
    text = "\n".join(sentences(explained(TABLE, partial, 4.5)[1]))
    assert "Batches 8, 16: the relation value is interpolated" in text
    missed = RelationVector("w", (8, 16), (None, 1.0))
    assert "Batch 8: no relation value" in "\n".join(sentences(explained(TABLE, missed, 4.5)[1]))


def test_with_nothing_feasible_the_words_say_so_and_from_which_cap_on_a_point_would_be() -> None:
    _, why = explained(TABLE, None, 1.0)
    assert headline(why) == (
        "batch 8 at 100 MHz: no measured point stays below the cap 1 W; this one draws least (2.00 W)"
    )
    assert "At a cap above 2.05 W a point would stay below it: batch 8 at 100 MHz." in sentences(why)
    _, close = explained(TABLE, None, 2.01)
    assert "no point stays below the cap 2.01 W surely enough" in headline(close)


def test_the_pinned_selection_keeps_its_keys_and_candidates_gain_some() -> None:
    choice, _ = explained(TABLE, RELATION, 4.5)
    answer = selection_json(choice)
    assert list(answer) == [
        "batch_size", "gpu_frequency_hz", "time_s", "peak_power_w", "energy_j", "feasible", "candidates",
    ]  # fmt: skip
    assert set(answer["candidates"][0]) >= {"batch_size", "gpu_frequency_hz", "time_s", "peak_power_w", "energy_j"}
    assert answer["candidates"][0]["origin"] is None


def joint_decision(bench: Bench) -> Decided:
    return [d for d in bench.of(Decided) if d.kind == "joint"][-1]


def test_a_live_decision_carries_its_explanation() -> None:
    relation = RelationVector("w", (8, 16, 32), (0.8, 0.9, 1.0))
    bench = Bench(cap=Cap(4.5))
    bench.register(relation=relation)
    bench.run(120)
    decision = joint_decision(bench)
    assert decision.detail["cap_w"] == 4.5
    assert decision.detail["chosen"]["batch_size"] == decision.point.batch_size
    assert decision.text == headline(decision.detail)
    text = "\n".join(sentences(json.loads(json.dumps(decision.detail))))
    assert f"Chosen: {decision.point}" in text


def test_a_batch_that_did_not_fit_is_named_in_the_explanation() -> None:
    bench = Bench(cap=Cap(4.5))
    bench.register(too_large=32, batch=16)
    bench.run(180)
    assert "Batch 32 did not fit into memory and left the choice." in sentences(joint_decision(bench).detail)


CLOCKS = (153_600_000, 460_800_000, 921_600_000)
LIVE = Lut(
    "nano", "w", 64, (8, 16), CLOCKS, ((40.0, 20.0, 8.0), (20.0, 10.0, 4.0)),
    *(((2.0, 3.0, 4.0), (2.2, 3.2, 4.2)),) * 2,
    origin=(("measured",) * 3,) * 2, power_std_w=((0.2,) * 3,) * 2,
)  # fmt: skip


def live_choice(lut: Lut, level: float = 0.05) -> OperatingPoint:
    """What the joint state decides under 4.25 W with ``lut``."""
    board = Board("nano", "R32", "MAXN", CLOCKS)
    settings_ = Settings(violation_probability=level)
    ctx = Context(board, settings_, PolicyName.JOINT, Objective.TIME, Guard(settings_.guard, (1, 2, 3)), Cap(4.25))
    job = Job(JobRegistered(0.0, "j", "w", (8, 16), 8), [8, 16], 8, lut)
    ctx.jobs["j"] = job
    Joint(job, lut).enter(ctx)
    return next(a.point for a in ctx.out if isinstance(a, Decided))


def test_the_configured_probability_rules_the_live_choice() -> None:
    # At the highest clock batch 8 exceeds 4.25 W with 11 %, batch 16 with 40 %.
    assert live_choice(LIVE, 0.05) == OperatingPoint(16, CLOCKS[1])
    assert live_choice(LIVE, 0.2) == OperatingPoint(8, CLOCKS[2])
    assert live_choice(LIVE, 0.45) == OperatingPoint(16, CLOCKS[2])


def test_a_predicted_point_is_never_chosen_live_however_good() -> None:
    origin = (("measured",) * 3, ("measured", "predicted", "predicted"))
    exact = replace(LIVE, power_std_w=None)
    assert live_choice(exact) == OperatingPoint(16, CLOCKS[2])
    assert live_choice(replace(exact, origin=origin)) == OperatingPoint(8, CLOCKS[2])
