"""The token bucket, and limits that contradict themselves."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traingov.sessions.limits import Limits, TokenBucket, message_cost

# A loaded machine must not fail a test.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@UNTIMED
@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 20)), max_size=200))
def test_no_pattern_of_messages_passes_more_than_burst_and_rate(events):
    bucket, now, passed = TokenBucket(10.0, 20.0, 0.0), 0.0, 0
    for wait, cost in events:
        now += wait
        if bucket.take(cost, now) == 0:
            passed += cost
    assert passed <= 20 + 10 * now + 1e-3


@UNTIMED
@given(st.integers(1, 20), st.floats(0, 1e6))
def test_waiting_as_long_as_told_is_enough(cost, start):
    bucket = TokenBucket(10.0, 20.0, start)
    assert bucket.take(20, start) == 0
    wait = bucket.take(cost, start)
    assert wait == pytest.approx(cost / 10)
    assert bucket.take(cost, start + wait) == 0


def test_a_clock_that_stands_still_gives_no_tokens():
    bucket = TokenBucket(10.0, 2.0, 5.0)
    assert [bucket.take(1, 5.0) for _ in range(3)] == [0, 0, pytest.approx(0.1)]


def test_a_long_message_costs_more():
    assert [message_cost(n) for n in (0, 1023, 1024, 65536)] == [1, 1, 2, 65]


@pytest.mark.parametrize("wrong", [{"burst": 10}, {"reserved_for_admins": 64}, {"rate_hz": 0}])
def test_limits_that_would_lock_everybody_out_are_refused(wrong):
    with pytest.raises(ValueError, match="limits"):
        Limits(**wrong)
