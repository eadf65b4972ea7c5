"""The simulated kernel has the manners that real ones have."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traingov_sim.kernel.devfreqnode import DevfreqSettings, SimulatedDevfreq
from traingov_sim.kernel.kernelfiles import KernelFiles

NODE = "/sys/class/devfreq/57000000.gpu"
NANO_HZ = (*(76_800_000 * step for step in range(1, 13)), 998_400_000)


@pytest.fixture
def kernel(tmp_path: Path) -> KernelFiles:
    return KernelFiles(str(tmp_path / "tree"))


def refused(number: int, kernel: KernelFiles, path: str, text: str) -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011
        kernel.write_text(path, text)
    assert caught.value.errno == number


@pytest.mark.parametrize("text", ["", "fast", "-1", "1 2", "1.5", " 7", "1\n\n", "9_9"])
def test_garbage_is_refused_with_einval(kernel: KernelFiles, text: str) -> None:
    kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ))
    refused(errno.EINVAL, kernel, f"{NODE}/max_freq", text)


def test_an_old_kernel_refuses_to_cross_the_bounds(kernel: KernelFiles) -> None:
    kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, minmax="refuse"))
    kernel.write_text(f"{NODE}/max_freq", "153600000\n")
    refused(errno.EINVAL, kernel, f"{NODE}/min_freq", "307200000")
    kernel.write_text(f"{NODE}/min_freq", "153600000")
    refused(errno.EINVAL, kernel, f"{NODE}/max_freq", "76800000")


def test_a_new_kernel_takes_crossing_bounds_and_shows_the_effective_ones(kernel: KernelFiles) -> None:
    node = kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, minmax="clamp"))
    kernel.write_text(f"{NODE}/max_freq", "153600000")
    kernel.write_text(f"{NODE}/min_freq", "307200000")
    assert node.bounds() == (153_600_000, 153_600_000)
    kernel.write_text(f"{NODE}/max_freq", "0")
    assert node.bounds() == (307_200_000, 998_400_000), "0 is no limit"


def test_a_value_off_the_table_snaps_as_on_an_overclocked_nano(kernel: KernelFiles) -> None:
    kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, snap="nearest"))
    kernel.write_text(f"{NODE}/max_freq", "970000000")
    assert kernel.read_text(f"{NODE}/max_freq") == "998400000\n"


@pytest.mark.parametrize("minmax", ["refuse", "clamp"])
def test_a_power_mode_s_limit_means_the_next_lower_step(kernel: KernelFiles, minmax: str) -> None:
    node = kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, minmax=minmax))
    node.set_ceiling(640_000_000)
    assert node.bounds()[1] == 614_400_000
    kernel.write_text(f"{NODE}/max_freq", "921600000")
    assert node.bounds()[1] == 614_400_000


def test_the_clock_follows_a_change_after_the_switch_delay(tmp_path: Path) -> None:
    now = [0.0]
    kernel = KernelFiles(str(tmp_path), clock=lambda: now[0])
    node = kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ, switch_delay_s=0.56))
    now[0] = 1.0
    kernel.write_text(f"{NODE}/max_freq", "153600000")
    assert (kernel.read_text(f"{NODE}/max_freq"), node.current_hz()) == ("153600000\n", 998_400_000)
    now[0] = 1.55
    assert node.current_hz() == 998_400_000
    now[0] = 1.57
    assert node.current_hz() == 153_600_000


def test_set_freq_exists_under_userspace_only_and_stays_within_the_bounds(kernel: KernelFiles) -> None:
    node = kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ))
    assert not kernel.exists(f"{NODE}/userspace/set_freq")
    refused(errno.EINVAL, kernel, f"{NODE}/governor", "ondemand")
    kernel.write_text(f"{NODE}/governor", "userspace\n")
    kernel.write_text(f"{NODE}/userspace/set_freq", "460800000")
    assert node.current_hz() == 460_800_000
    kernel.write_text(f"{NODE}/max_freq", "153600000")
    assert node.current_hz() == 153_600_000
    kernel.write_text(f"{NODE}/governor", "nvhost_podgov")
    assert not kernel.exists(f"{NODE}/userspace")


def test_what_cannot_be_written_is_refused(kernel: KernelFiles) -> None:
    kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ))
    refused(errno.EACCES, kernel, f"{NODE}/cur_freq", "1")
    refused(errno.ENOENT, kernel, f"{NODE}/no_such_file", "1")


def test_the_nth_write_fails_and_only_that_one(kernel: KernelFiles) -> None:
    kernel.put("/sys/x", "0")
    kernel.fail("/sys/x", errno.EBUSY, nth=2)
    kernel.write_text("/sys/x", "1")
    refused(errno.EBUSY, kernel, "/sys/x", "2")
    kernel.write_text("/sys/x", "3")
    assert kernel.read_text("/sys/x") == "3"


def test_a_sensor_file_can_be_unreadable_for_good(kernel: KernelFiles) -> None:
    kernel.put("/sys/in4_input", "0")
    kernel.fail("/sys/in4_input", errno.EIO, operation="read", times=None)
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output error"):
            kernel.read_text("/sys/in4_input")
    kernel.mend()
    assert kernel.read_text("/sys/in4_input") == "0"


def test_hooks_see_taken_writes_and_may_refresh_what_is_read(kernel: KernelFiles) -> None:
    kernel.add_devfreq(NODE, DevfreqSettings(NANO_HZ))
    kernel.put("/sys/load", "0")
    writes: list[tuple[str, str]] = []
    kernel.on_write.append(lambda path, text: writes.append((path, text)))
    kernel.on_read.append(lambda path: kernel.put(path, "617\n") if path == "/sys/load" else None)
    assert kernel.read_text("/sys/load") == "617\n"
    kernel.write_text(f"{NODE}/max_freq", "153600000")
    refused(errno.EINVAL, kernel, f"{NODE}/max_freq", "rubbish")
    assert writes == [(f"{NODE}/max_freq", "153600000")]


def test_the_folder_shows_what_the_node_shows(kernel: KernelFiles) -> None:
    kernel.add_devfreq("/sys/devices/gpu.0/devfreq/gpu.0", DevfreqSettings(NANO_HZ))
    kernel.link("/sys/class/devfreq/gpu.0", "../../devices/gpu.0/devfreq/gpu.0")
    kernel.write_text("/sys/class/devfreq/gpu.0/max_freq", "153600000\n")
    assert Path(f"{kernel.folder}/sys/devices/gpu.0/devfreq/gpu.0/max_freq").read_text() == "153600000\n"
    assert kernel.real_path("/sys/class/devfreq/gpu.0/max_freq") == "/sys/devices/gpu.0/devfreq/gpu.0/max_freq"


@settings(deadline=None)
@given(
    writes=st.lists(st.tuples(st.sampled_from(["min_freq", "max_freq"]), st.integers(0, 2 * 10**9)), max_size=20),
    snap=st.sampled_from(["keep", "up", "down", "nearest"]),
    minmax=st.sampled_from(["refuse", "clamp"]),
    ceiling_hz=st.sampled_from([None, 10, 640_000_000, 10**10]),
)
def test_the_node_never_shows_a_minimum_above_its_maximum_and_the_clock_stays_on_the_table(
    writes: list[tuple[str, int]], snap: str, minmax: str, ceiling_hz: int | None
) -> None:
    node = SimulatedDevfreq(
        DevfreqSettings(NANO_HZ, snap=snap, minmax=minmax, ceiling_hz=ceiling_hz), clock=lambda: 0.0
    )
    for name, value in writes:
        if minmax == "clamp":
            node.write(name, str(value))  # never refuses a number
        else:
            with contextlib.suppress(OSError):
                node.write(name, str(value))
        low, high = node.bounds()
        assert low <= high
        assert node.current_hz() in NANO_HZ
