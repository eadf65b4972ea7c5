"""The battery and the solar panel beside a virtual board."""

from __future__ import annotations

import math

import pytest

from traingov_sim.board.battery import Battery, Solar
from traingov_sim.board.boardspec import load_board, noiseless
from traingov_sim.board.physics import VirtualBoard


def test_the_board_discharges_its_battery_by_what_it_draws() -> None:
    board = VirtualBoard(noiseless(load_board("nano")))
    board.battery = Battery(capacity_wh=1.0, charge=0.5, efficiency=0.8)
    board.advance(600.0)
    drawn_wh = board.truth(600.0).input_j / 0.8 / 3600
    assert board.battery.charge == pytest.approx(0.5 - drawn_wh, abs=1e-4)
    assert board.battery.status == "Discharging"


def test_sun_above_the_boards_draw_charges_and_a_full_battery_is_full() -> None:
    noon = Solar(peak_w=30.0, day_s=20_000.0, sunrise=0.0, sunset=1.0)
    battery = Battery(capacity_wh=1.0, charge=0.97, solar=noon)
    t = 0.0
    while t < 16_000.0:
        t += 1.0
        battery.advance(t, 1.0, 3.0)
    assert battery.charge > 0.999
    assert battery.status == "Full"
    battery.advance(20_000.0, 1.0, 3.0)
    assert battery.status == "Discharging"


def test_an_empty_battery_stays_at_zero() -> None:
    battery = Battery(capacity_wh=0.001, charge=0.5)
    for t in range(100):
        battery.advance(float(t), 1.0, 10.0)
    assert battery.charge == 0.0


def test_the_sun_is_a_half_sine_between_sunrise_and_sunset() -> None:
    sun = Solar(peak_w=10.0, day_s=24.0, sunrise=0.25, sunset=0.75)
    assert [sun.power_w(t) for t in (0.0, 5.9, 18.1, 23.0)] == [0.0] * 4
    assert sun.power_w(12.0) == pytest.approx(10.0)
    assert sun.power_w(9.0) == sun.power_w(24 + 9.0) == pytest.approx(10 * math.sin(math.pi / 4))


def test_clouds_take_at_most_their_share_and_the_same_seed_gives_the_same_sky() -> None:
    clear = Solar(peak_w=10.0, day_s=3600.0)
    cloudy = Solar(peak_w=10.0, day_s=3600.0, clouds=0.6, cloud_s=60.0, seed=1)
    times = [900.0 + 5 * k for k in range(360)]
    ratios = [cloudy.power_w(t) / clear.power_w(t) for t in times if clear.power_w(t) > 0]
    assert 0.4 <= min(ratios) < 0.6 < max(ratios) <= 1.0
    assert [cloudy.power_w(t) for t in times] == [
        Solar(peak_w=10.0, day_s=3600.0, clouds=0.6, cloud_s=60.0, seed=1).power_w(t) for t in times
    ]


@pytest.mark.parametrize(
    "data", [{"charge": 2}, {"capacity_wh": 0}, {"solar": {"sunrise": 0.8, "sunset": 0.2}}, {"solar": {"clouds": 2}}]
)
def test_a_battery_without_sense_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="battery|solar"):
        Battery.from_json(data)
