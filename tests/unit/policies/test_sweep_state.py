"""The energy sweep on the bench: exact power and time, so that every row can be checked."""

import itertools

from bench import CLOCKS, Bench, power_w, step_s

from traingov_policies.actions import PersistSweep, RestoreGpuBounds, SetGpuBounds
from traingov_policies.codec import decode_event, encode_event
from traingov_policies.events import Sample, SweepRequested, SweepStopped
from traingov_policies.settings import Settings
from traingov_policies.sweeping import SAMPLES
from traingov_policies.values import Cap, Features, PolicyName

OBSERVE = Settings(policy=PolicyName.OBSERVE)
FEATURES = Features("bert", 4, 512, 31.0)
THREE = (CLOCKS[3], CLOCKS[7], CLOCKS[11])


class HotBench(Bench):
    """Heats up at any clock but the lowest, cools down there."""

    celsius = 60.0
    rise = 0.5

    def _sample(self):
        self.celsius += -0.2 if self.hz == CLOCKS[0] else self.rise * self.sampling
        self.celsius = max(self.celsius, 40.0)
        super()._sample()

    def feed(self, event):
        if isinstance(event, Sample):
            event = Sample(*(getattr(event, f) for f in ("t_s", "input_power_w", "compute_power_w")),
                           event.gpu_frequency_hz, event.gpu_utilization, self.celsius)  # fmt: skip
        super().feed(event)


def begun(bench=None, clocks=THREE, duration_s=5.0, steps=None, done=()):
    bench = bench or Bench(settings=OBSERVE)
    bench.register(batches=(16,), batch=16, features=FEATURES)
    bench.run(1.0)
    bench.feed(SweepRequested(bench.now, "j1", clocks, duration_s, steps, done))
    return bench


def state(bench):
    return bench.governor.snapshot()["sweep"]


def rows(bench):
    return bench.of(PersistSweep)[-1].rows


def test_mode_0_comes_first_then_every_clock_and_the_bounds_are_given_back():
    bench = begun().run(60)
    assert state(bench)["state"] == "finished"
    assert [row.gpu_frequency_hz for row in rows(bench)] == [None, *THREE]
    writes = [a for _, a in bench.log if isinstance(a, (SetGpuBounds, RestoreGpuBounds))]
    assert [w.max_hz for w in writes[:-1]] == list(THREE)
    assert isinstance(writes[-1], RestoreGpuBounds)
    assert bench.governor.snapshot()["state"] == "observing"


def test_a_row_is_time_and_mean_power_scaled_to_the_same_samples():
    bench = begun().run(60)
    for row in rows(bench):
        hz = row.gpu_frequency_hz or CLOCKS[-1]
        time_s = step_s(16, hz) / 16 * SAMPLES
        assert abs(row.time_s / time_s - 1) < 0.002
        assert abs(row.input_energy_j / (power_w(16, hz) * time_s) - 1) < 0.005
        assert abs(row.compute_energy_j / row.input_energy_j - 0.5) < 0.001
        assert (row.model_type, row.layers, row.hidden_size, row.seq_len_avg) == ("bert", 4, 512, 31.0)
        assert abs(row.gpu_utilization - 90) < 1e-6


def test_nothing_before_the_clock_has_settled_for_two_seconds_counts():
    bench = begun(clocks=(CLOCKS[3],)).run(40)
    write = next(t for t, a in bench.log if isinstance(a, SetGpuBounds))
    kept = [t for t, a in bench.log if isinstance(a, PersistSweep)]
    assert kept[1] - write >= 2.0 + 5.0


def test_a_number_of_steps_ends_a_point_as_well():
    bench = begun(duration_s=None, steps=20).run(60)
    assert state(bench)["state"] == "finished"
    times = [t for t, a in bench.log if isinstance(a, PersistSweep)]
    longest = 2.5 + 22 * step_s(16, THREE[0])
    assert all(b - a < longest for a, b in itertools.pairwise(times))


def test_a_sweep_goes_on_after_the_rows_it_already_has():
    done = rows(begun().run(60))[:2]
    bench = begun(done=done)
    assert state(bench)["measured"] == 2
    bench.run(60)
    assert [row.gpu_frequency_hz for row in rows(bench)] == [None, *THREE]
    assert rows(bench)[:2] == done
    assert [a.max_hz for a in bench.of(SetGpuBounds)] == list(THREE[1:])


def test_a_run_shorter_than_the_wished_time_counts_whole_and_the_next_run_goes_on():
    bench = begun(duration_s=300.0)
    for number in range(1, 5):
        bench.run(10)
        bench.end(f"j{number}")
        assert len(rows(bench)) == number
        if number < 4:
            assert state(bench)["state"] == "waiting"
            bench.register(f"j{number + 1}", batches=(16,), batch=16, features=FEATURES)
    assert state(bench)["state"] == "finished"
    assert bench.governor.snapshot()["state"] == "idle"


def test_a_cap_ends_the_sweep_because_a_sweep_measures_every_clock():
    bench = begun().run(8)
    bench.set_cap(Cap(3.0))
    assert state(bench)["state"] == "stopped"
    assert "cap" in state(bench)["text"]
    bench.run(30)
    assert len(rows(bench)) < 4


def test_no_sweep_begins_under_a_cap():
    bench = begun(Bench(settings=OBSERVE, cap=Cap(3.0)))
    assert state(bench) is None
    assert "clear the cap first" in bench.texts("sweep")[-1]


def test_a_sweep_can_be_stopped_and_keeps_its_rows():
    bench = begun().run(12)
    bench.feed(SweepStopped(bench.now))
    assert state(bench)["state"] == "stopped"
    assert bench.governor.snapshot()["state"] == "observing"
    kept = len(rows(bench))
    bench.run(30)
    assert len(rows(bench)) == kept


def test_a_second_job_interrupts_the_sweep_and_it_goes_on_when_that_one_ends():
    bench = begun().run(4)
    bench.register("j2", batches=(16,), batch=16)
    assert state(bench)["state"] == "waiting"
    bench.run(5)
    bench.end("j2")
    bench.run(60)
    assert state(bench)["state"] == "finished"
    assert len(rows(bench)) == 4


def test_a_clock_that_is_refused_is_given_up_and_the_others_are_measured():
    bench = Bench(settings=OBSERVE, refuse="/x/max_freq: refused (Input/output error)")
    begun(bench)
    while not state(bench)["failed"]:
        bench.run(1)
    bench.refuse = None
    bench.run(60)
    assert state(bench)["state"] == "finished"
    assert len(rows(bench)) + len(state(bench)["failed"]) == 4
    assert str(CLOCKS[3]) in state(bench)["failed"]


def test_a_clock_that_reads_back_right_but_does_not_hold_gives_no_row():
    bench = begun(Bench(settings=OBSERVE, switch_delay_s=1e9)).run(90)
    assert [row.gpu_frequency_hz for row in rows(bench)] == [None, CLOCKS[11]]  # it stayed at the top all along
    assert all("on average" in why for why in state(bench)["failed"].values())


def test_a_hot_board_cools_at_the_lowest_clock_before_a_point_begins():
    bench = begun(HotBench(settings=OBSERVE), duration_s=20.0).run(300)
    assert state(bench)["state"] == "finished"
    assert len(rows(bench)) == 4
    cooling = [t for t, a in bench.log if isinstance(a, SetGpuBounds) and a.max_hz == CLOCKS[0]]
    assert cooling
    assert "cooling below 75" in next(a.reason for a in bench.of(SetGpuBounds) if a.max_hz == CLOCKS[0])


def test_a_board_that_stays_hot_is_not_waited_for_without_end():
    bench = begun(HotBench(settings=OBSERVE))
    for _ in range(12):  # time passes in the event's stamps only
        bench.now += 100
        bench.celsius = 90.0
        bench.feed(Sample(bench.now, 4.0, 2.0, CLOCKS[0], 0.9, 90.0))
    assert any("still 90 °C" in text for text in bench.texts("sweep-point"))


def test_a_job_without_power_readings_gives_no_rows_and_an_end():
    bench = begun(Bench(settings=OBSERVE, rails_on=False)).run(120)
    assert state(bench)["state"] == "finished"
    assert bench.of(PersistSweep) == []
    assert set(state(bench)["failed"].values()) == {"no power reading"}


def test_a_point_during_which_telemetry_fell_silent_is_measured_again():
    bench = begun().run(4)
    bench.sensor_on = False
    bench.run(6)
    assert "cover" in bench.texts("measurement-invalid")[0]
    bench.sensor_on = True
    bench.run(60)
    assert state(bench)["state"] == "finished"
    assert len(rows(bench)) == 4


def test_the_request_comes_back_from_a_recording():
    event = SweepRequested(1.0, "j1", THREE, None, 50, rows(begun().run(60)))
    assert decode_event(encode_event(event)) == event
