import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov_policies.sweep import COLUMNS, SweepRow, curves, from_csv, to_csv

_POSITIVE = st.floats(1e-6, 1e9, allow_nan=False)
_MAYBE = st.none() | _POSITIVE
_ROWS = st.builds(
    SweepRow,
    st.text("abc/,-\"' ", min_size=1),
    st.none() | st.sampled_from(["bert", "deberta-v2"]),
    st.none() | st.integers(1, 99),
    st.none() | st.integers(1, 9999),
    _MAYBE,
    st.none() | st.floats(0, 100),
    st.none() | st.integers(1, 2_000_000_000),
    _POSITIVE,
    _MAYBE,
    _MAYBE,
)


def row(hz, joules, *, time_s=10.0, utilization=50.0):
    return SweepRow("bert/rte", "bert", 4, 512, 30.0, utilization, hz, time_s, joules, None)


@given(st.lists(_ROWS, max_size=5))
def test_rows_come_back_from_csv_exactly(rows):
    assert from_csv(to_csv(rows)) == rows


def test_the_header_is_the_one_of_the_format():
    assert to_csv([]).strip() == ",".join(COLUMNS)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("a,bert,4,512,30,50,xyz,10,100,", "f.csv:2: gpu_frequency_hz"),
        ("a,bert,4,512,30,50,,10,100,", "f.csv:2: gpu_frequency_hz is empty"),
        ("a,bert,4,512,30,50,mode0,,100,", "f.csv:2: time_s is empty"),
        ("a,bert,4,512,30,50,mode0,-1,100,", "f.csv:2: time_s must be"),
        ("a,bert,4.5,512,30,50,mode0,1,100,", "f.csv:2: layers must be a whole number"),
        (",bert,4,512,30,50,mode0,1,100,", "f.csv:2: workload is empty"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(line, what):
    with pytest.raises(ValueError, match=what):
        from_csv(",".join(COLUMNS) + "\n" + line + "\n", "f.csv")


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="'time_s' is missing"):
        from_csv("workload,model_type,layers,hidden_size,seq_len_avg,gpu_utilization,gpu_frequency_hz\n")


def test_features_are_those_of_mode_0_because_utilization_depends_on_the_clock():
    (curve,) = curves([row(500, 90.0, utilization=80.0), row(900, 95.0, utilization=40.0), row(None, 100.0)])
    assert curve.features["gpu_utilization"] == 50.0
    assert curve.best_hz == 500
    assert curve.saving(500) == pytest.approx(0.1)
    assert curve.regret(900) == pytest.approx(95 / 90 - 1)


def test_without_a_baseline_features_come_from_the_highest_clock_and_savings_are_unknown():
    (curve,) = curves([row(500, 90.0, utilization=80.0), row(900, 95.0, utilization=40.0)])
    assert curve.features["gpu_utilization"] == 40.0
    assert curve.saving(500) is None


def test_a_point_measured_twice_is_averaged():
    (curve,) = curves([row(500, 90.0), row(500, 110.0), row(900, 95.0)])
    assert curve.cost[500] == pytest.approx(100.0)
    assert curve.best_hz == 900


def test_the_product_of_energy_and_time_can_be_minimised_instead():
    (curve,) = curves([row(500, 90.0, time_s=20.0), row(900, 95.0, time_s=10.0)], edp=True)
    assert curve.best_hz == 900


def test_a_sweep_without_the_energy_that_is_asked_for_is_refused():
    with pytest.raises(ValueError, match="no input energy"):
        curves([row(500, 90.0), row(900, 95.0)], "input")
