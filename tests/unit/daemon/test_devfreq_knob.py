"""Bounding the clock: order of writes, read-back, refusals, other writers (DESIGN 5.1, 5.2)."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traingov.device.bounds import Bounds, ceiling, write_order
from traingov.device.devfreq import GpuKnob, find_gpu
from traingov.device.journal import RestoreJournal
from traingov_sim.kernel.devfreqnode import DevfreqSettings, SimulatedDevfreq
from traingov_sim.kernel.kernelfiles import KernelFiles

NODE = "/sys/devices/57000000.gpu/devfreq/57000000.gpu"
NANO_HZ = tuple(76_800_000 * step for step in range(1, 13))
MIN, MAX = f"{NODE}/min_freq", f"{NODE}/max_freq"


class World:
    """A board with one GPU node, a knob on it, and a log of what the kernel saw."""

    def __init__(self, folder: Path, **manners: object) -> None:
        self.kernel = KernelFiles(str(folder / "tree"))
        self.kernel.put("/proc/sys/kernel/random/boot_id", "this-boot\n")
        self.node: SimulatedDevfreq = self.kernel.add_devfreq(
            NODE,
            DevfreqSettings(NANO_HZ, **manners),  # type: ignore[arg-type]
        )
        self.state = folder / "state" / "restore.json"
        self.warnings: list[str] = []
        self.knob = self.new_knob()

    def new_knob(self) -> GpuKnob:
        node = find_gpu(self.kernel)
        assert node is not None
        return GpuKnob(node, self.kernel, RestoreJournal(str(self.state), self.kernel, self.warnings.append))

    def shown(self) -> tuple[int, int]:
        return int(self.kernel.read_text(MIN)), int(self.kernel.read_text(MAX))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_raising_writes_the_maximum_first_and_lowering_the_minimum_first(world: World) -> None:
    down = world.knob.set_bounds(153_600_000, 153_600_000)
    up = world.knob.set_bounds(614_400_000, 614_400_000)
    assert [name for name, _ in down.writes] == ["min_freq", "max_freq"]
    assert [name for name, _ in up.writes] == ["max_freq", "min_freq"]
    assert (down.errors, up.errors) == ((), ())
    assert world.shown() == (614_400_000, 614_400_000)


_VALID = st.tuples(st.integers(0, 10**10), st.integers(0, 10**10)).map(sorted)


@given(present=_VALID, target=_VALID)
def test_no_order_of_writes_lets_the_minimum_pass_the_maximum(present: list[int], target: list[int]) -> None:
    low, high = present
    for kind in write_order(high, target[1]):
        low, high = (target[0], high) if kind == "min" else (low, target[1])
        assert low <= ceiling(high)


def test_a_clock_that_snapped_is_reported(tmp_path: Path) -> None:
    world = World(tmp_path, snap="up")
    result = world.knob.set_bounds(400_000_000, 400_000_000)
    assert (result.actual.min_hz, result.actual.max_hz) == (460_800_000, 460_800_000)
    assert "asked for 400000000 Hz, the kernel set 460800000 Hz" in result.notes[0]
    assert result.errors == ()


def test_a_power_mode_that_clamps_is_reported(tmp_path: Path) -> None:
    world = World(tmp_path, minmax="clamp", ceiling_hz=640_000_000)
    result = world.knob.set_bounds(921_600_000, 921_600_000)
    assert result.actual.max_hz == 614_400_000
    assert any("max_freq" in note for note in result.notes)


def test_a_bound_hidden_under_a_lower_limit_does_not_come_out_when_the_limit_goes(tmp_path: Path) -> None:
    world = World(tmp_path, minmax="clamp", ceiling_hz=640_000_000)
    assert world.shown()[1] == 614_400_000
    world.knob.set_bounds(76_800_000, 614_400_000)
    world.node.set_ceiling(None)
    assert world.shown()[1] == 614_400_000


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "group devfreq"),
        (errno.EBUSY, "another program holds"),
        (errno.EIO, "dmesg"),
        (errno.EINVAL, "available_frequencies"),
        (errno.EROFS, "ReadWritePaths"),
        (errno.ENOSPC, "ENOSPC"),
    ],
)
def test_a_refusal_is_one_line_with_what_to_do_and_no_exception(world: World, number: int, advice: str) -> None:
    world.kernel.fail(MIN, number)
    result = world.knob.set_bounds(153_600_000, 153_600_000)
    assert len(result.errors) == 1
    assert errno.errorcode[number] in result.errors[0]
    assert advice in result.errors[0]
    assert "\n" not in (result.error or "")


def test_the_maximum_still_comes_down_as_far_as_it_may_when_the_minimum_is_refused(world: World) -> None:
    world.knob.set_bounds(614_400_000, 921_600_000)
    world.kernel.fail(MIN, errno.EIO)
    result = world.knob.set_bounds(76_800_000, 76_800_000)
    assert result.writes == (("max_freq", 614_400_000),)
    assert (result.actual.min_hz, result.actual.max_hz) == (614_400_000, 614_400_000)
    assert result.errors


def test_a_bound_that_cannot_be_read_is_not_written_because_its_original_would_be_lost(world: World) -> None:
    world.kernel.fail(MAX, errno.EIO, operation="read", times=None)
    writes: list[str] = []
    world.kernel.on_write.append(lambda path, _text: writes.append(path))
    result = world.knob.set_bounds(76_800_000, 153_600_000)
    assert writes == []
    assert result.actual.max_hz is None, "a missing reading is missing, never 0"
    assert "nothing is written" in result.errors[0]


def test_nothing_is_written_where_the_journal_cannot_be_saved(world: World) -> None:
    world.state.parent.parent.joinpath("state").write_text("a file, not a folder")
    result = world.knob.set_bounds(76_800_000, 153_600_000)
    assert result.writes == ()
    assert "cannot use" in result.errors[0]
    assert world.shown() == (76_800_000, 921_600_000)


@pytest.mark.parametrize("bounds", [(2, 1), (-5, 100), (0, 0), (1, 10**18)])
def test_bounds_that_make_no_sense_are_refused_before_any_write(world: World, bounds: tuple[int, int]) -> None:
    result = world.knob.set_bounds(*bounds)
    assert "make no sense" in result.errors[0]
    assert not world.state.exists()


def test_the_originals_are_on_disk_when_the_first_write_reaches_the_kernel(world: World) -> None:
    seen: list[dict[str, str]] = []

    def look(_path: str, _text: str) -> None:
        knobs = json.loads(world.state.read_text())["knobs"]
        seen.append({knob["path"].rsplit("/", 1)[1]: knob["original"] for knob in knobs})

    world.kernel.on_write.append(look)
    world.knob.set_bounds(153_600_000, 153_600_000)
    originals = {"min_freq": "76800000", "max_freq": "921600000", "governor": "nvhost_podgov"}
    assert seen == [originals, originals]


def test_a_known_value_costs_no_rewrite_of_the_journal(world: World) -> None:
    steps = [153_600_000, 307_200_000]
    for step in steps:
        world.knob.set_bounds(step, step)
    before = world.state.stat()
    for step in steps * 20:
        world.knob.set_bounds(step, step)
    after = world.state.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_journal_that_somebody_removed_is_written_again_before_the_next_write(world: World) -> None:
    world.knob.set_bounds(153_600_000, 153_600_000)
    world.state.unlink()
    world.knob.set_bounds(153_600_000, 153_600_000)
    originals = [knob["original"] for knob in json.loads(world.state.read_text())["knobs"]]
    assert originals == ["76800000", "921600000", "nvhost_podgov"]


def test_the_governor_is_saved_and_never_written(world: World) -> None:
    writes: list[str] = []
    world.kernel.on_write.append(lambda path, _text: writes.append(path))
    world.knob.set_bounds(153_600_000, 153_600_000)
    world.knob.restore()
    assert not any(path.endswith("governor") for path in writes)


def test_another_writer_is_noticed(world: World) -> None:
    set_to = world.knob.set_bounds(153_600_000, 307_200_000).actual
    assert world.knob.holds(set_to)
    world.kernel.write_text(MAX, "921600000\n")  # jetson_clocks
    assert not world.knob.holds(set_to)
    assert world.knob.holds(Bounds(153_600_000, None))


def test_restore_gives_back_what_was_found_and_not_the_defaults(world: World) -> None:
    world.kernel.write_text(MAX, "768000000\n")
    world.kernel.write_text(MIN, "153600000\n")
    world.knob.set_bounds(307_200_000, 307_200_000)
    report = world.knob.restore()
    assert report.status == "restored"
    assert world.shown() == (153_600_000, 768_000_000)
    assert not world.state.exists()
    assert world.knob.restore().status == "nothing"


def test_after_a_restore_the_next_job_finds_new_originals(world: World) -> None:
    world.knob.set_bounds(307_200_000, 307_200_000)
    world.knob.restore()
    world.kernel.write_text(MAX, "614400000\n")
    world.knob.set_bounds(153_600_000, 153_600_000)
    world.knob.restore()
    assert world.shown() == (76_800_000, 614_400_000)


def test_the_clock_itself_follows_only_after_the_switch_delay(tmp_path: Path) -> None:
    now = [100.0]
    kernel = KernelFiles(str(tmp_path / "tree"), clock=lambda: now[0])
    kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, switch_delay_s=0.65))
    node = find_gpu(kernel)
    assert node is not None
    knob = GpuKnob(node, kernel, RestoreJournal(str(tmp_path / "restore.json"), kernel, pytest.fail))
    actual = knob.set_bounds(153_600_000, 153_600_000).actual
    assert (actual.max_hz, actual.cur_hz) == (153_600_000, 921_600_000), "a read-back is not proof"
    now[0] += 0.7
    assert knob.read().cur_hz == 153_600_000


_HZ = st.integers(76_800_000, 1_000_000_000) | st.sampled_from(NANO_HZ)
_STEP = st.tuples(
    st.tuples(_HZ, _HZ).map(sorted),
    st.none() | st.tuples(st.sampled_from([MIN, MAX]), st.sampled_from([errno.EIO, errno.EBUSY, errno.EACCES])),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(_STEP, min_size=1, max_size=8),
    snap=st.sampled_from(["keep", "up", "down", "nearest"]),
    minmax=st.sampled_from(["refuse", "clamp"]),
    ceiling_hz=st.sampled_from([None, 640_000_000]),
)
def test_no_write_crosses_the_bounds_or_comes_before_its_original_whatever_fails(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[list[int], tuple[str, int] | None]],
    snap: str,
    minmax: str,
    ceiling_hz: int | None,
) -> None:
    world = World(tmp_path_factory.mktemp("knob"), snap=snap, minmax=minmax, ceiling_hz=ceiling_hz)
    original = world.shown()
    between: list[tuple[int, int]] = []
    saved_originals: list[bool] = []

    # An error in a hook would reach the knob, so the hook only notes and the test asserts.
    def note(path: str, _text: str) -> None:
        saved = {knob["path"]: knob["original"] for knob in json.loads(world.state.read_text())["knobs"]}
        saved_originals.append(saved.get(path) == str(original[0] if path == MIN else original[1]))
        between.append(world.shown())

    world.kernel.on_write.append(note)
    for (low, high), fault in steps:
        if fault is not None:
            world.kernel.fail(*fault)
        result = world.knob.set_bounds(low, high)
        assert (result.actual.min_hz, result.actual.max_hz) == world.shown()
        # A 4.9 kernel answers EINVAL to a write that crosses the other bound: we never ask for one.
        assert not any("EINVAL" in error for error in result.errors)
        assert bool(result.errors) or (result.actual.min_hz, result.actual.max_hz) == (low, high) or result.notes
        world.kernel.mend()
    assert all(low <= high for low, high in between)
    assert all(saved_originals)
    assert world.knob.restore().exit_status == 0
    assert world.shown() == original
