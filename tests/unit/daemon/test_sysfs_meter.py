"""Power monitors through hwmon and iio: rails by label, not by number; what cannot be read is missing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from traingov.device.files import SystemFiles
from traingov.telemetry.interface import MeterError
from traingov.telemetry.monitors import find_channels
from traingov.telemetry.sysfs import SysfsMeter


class Files(SystemFiles):
    """A root some of whose files answer an errno. Counts reads by path."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.broken: dict[str, int] = {}
        self.reads: dict[str, int] = {}

    def read_text(self, path: str) -> str:
        real = self.real_path(path)
        self.reads[real] = self.reads.get(real, 0) + 1
        if real in self.broken:
            raise OSError(self.broken[real], os.strerror(self.broken[real]), path)
        return super().read_text(path)


def put(root: Path, folder: str, **files: object) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / folder / name).write_text(f"{text}\n")


def link(root: Path, path: str, target: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).symlink_to(os.path.relpath(root / target, (root / path).parent))


def orin_nano(root: Path, number: int = 4) -> str:
    real = f"sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040/hwmon/hwmon{number}"
    put(
        root, real, name="ina3221", in1_label="VDD_IN", in1_input=5000, curr1_input=1000, curr1_max=7784,
        in2_label="VDD_CPU_GPU_CV", in2_input=4900, curr2_input=200, in3_label="VDD_SOC", in3_input=4900,
        curr3_input=300, in4_input=5, in5_input=1, in6_input=1, in7_label="sum of shunt voltages", in7_input=8,
        curr7_input=9, curr4_input=9,
    )  # fmt: skip
    put(root, "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040", name="ina3221")
    link(root, "sys/bus/i2c/drivers/ina3221/1-0040", "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040")
    link(root, f"sys/class/hwmon/hwmon{number}", real)
    return "/" + real


def test_a_hwmon_rail_is_millivolts_times_milliamperes_and_sums_are_no_rails(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    reading = SysfsMeter(Files(tmp_path)).read()
    assert reading.rails_w == pytest.approx({"VDD_IN": 5.0, "VDD_CPU_GPU_CV": 0.98, "VDD_SOC": 1.47})


def test_one_monitor_reached_by_driver_bus_and_class_counts_once(tmp_path: Path) -> None:
    real = orin_nano(tmp_path)
    link(tmp_path, "sys/bus/i2c/devices/1-0040", real[1:].rsplit("/hwmon/", 1)[0])
    assert len(find_channels(Files(tmp_path))) == 3


@pytest.mark.parametrize("missing", ["drivers", "class", "both"])
def test_any_one_way_to_the_monitor_is_enough(tmp_path: Path, missing: str) -> None:
    real = orin_nano(tmp_path)
    if missing in ("drivers", "both"):
        (tmp_path / "sys/bus/i2c/drivers/ina3221/1-0040").unlink()
    if missing in ("class", "both"):
        (tmp_path / "sys/class/hwmon/hwmon4").unlink()
    if missing == "both":
        link(tmp_path, "sys/bus/i2c/devices/1-0040", real[1:].rsplit("/hwmon/", 1)[0])
    assert [ch.rail for ch in find_channels(Files(tmp_path))] == ["VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"]


def test_an_iio_rail_of_jetpack_4_is_its_power_file_in_milliwatts(tmp_path: Path) -> None:
    folder = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    for n, (rail, mw) in enumerate([("POM_5V_IN", 1718), ("POM_5V_GPU", 40), ("POM_5V_CPU", 402)]):
        put(tmp_path, folder, **{f"rail_name_{n}": rail, f"in_power{n}_input": mw})
    assert SysfsMeter(Files(tmp_path)).read().rails_w == {"POM_5V_IN": 1.718, "POM_5V_GPU": 0.04, "POM_5V_CPU": 0.402}


def test_the_power_of_an_ina238_is_in_microwatts_and_is_thors_input(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/hwmon/hwmon5", name="ina238", power1_input=71_210_000, in1_input=20000, curr1_input=3560)
    assert SysfsMeter(Files(tmp_path)).read().rails_w == {"VIN": 71.21}


def test_power_below_zero_is_read_as_it_is(tmp_path: Path) -> None:
    real = orin_nano(tmp_path)[1:]
    put(tmp_path, real, curr2_input=-80)
    assert SysfsMeter(Files(tmp_path)).read().rails_w["VDD_CPU_GPU_CV"] == pytest.approx(-0.392)


def test_a_usb_c_supply_beside_the_monitor_is_no_rail(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    put(tmp_path, "sys/class/hwmon/hwmon9", name="ucsi_source_psy_USBC000:001", in0_input=5000, curr1_input=0,
        in1_label="VBUS", in1_input=5000)  # fmt: skip
    assert set(SysfsMeter(Files(tmp_path)).read().rails_w) == {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"}


def test_two_rails_called_nc_are_kept_apart(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/hwmon/hwmon4", name="ina3221", in1_label="NC", in1_input=0, curr1_input=0,
        in2_label="VDDQ_VDD2_1V8AO", in2_input=5000, curr2_input=200, in3_label="NC", in3_input=0,
        curr3_input=0)  # fmt: skip
    assert SysfsMeter(Files(tmp_path)).read().rails_w == {"NC": 0, "VDDQ_VDD2_1V8AO": 1.0, "NC_2": 0}


def test_a_file_that_answers_eio_is_a_missing_rail_and_not_zero(tmp_path: Path) -> None:
    real, files = orin_nano(tmp_path), Files(tmp_path)
    files.broken[f"{real}/curr2_input"] = errno.EIO
    assert set(SysfsMeter(files).read().rails_w) == {"VDD_IN", "VDD_SOC"}


def test_a_monitor_that_comes_back_under_another_number_is_found_again(tmp_path: Path) -> None:
    orin_nano(tmp_path, 4)
    now = [0.0]
    meter = SysfsMeter(Files(tmp_path), lambda: now[0])
    assert len(meter.read().rails_w) == 3
    parent = tmp_path / "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040/hwmon"
    (parent / "hwmon4").rename(parent / "hwmon2")
    (tmp_path / "sys/class/hwmon/hwmon4").unlink()
    put(tmp_path, "sys/class/thermal/thermal_zone0", type="cpu-thermal", temp=40000)
    now[0] = 10.0
    assert len(meter.read().rails_w) == 3


def test_clock_load_and_temperatures_come_with_it_and_gated_zones_do_not(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    node = "sys/devices/platform/bus@0/17000000.gpu/devfreq/17000000.gpu"
    put(tmp_path, node, min_freq=306000000, max_freq=624750000, cur_freq=510000000)
    put(tmp_path, "sys/devices/platform/bus@0/17000000.gpu", load=437)
    link(tmp_path, "sys/class/devfreq/17000000.gpu", node)
    for n, (zone, temp) in enumerate([("gpu-thermal", 43437), ("cv0-thermal", -256000), ("tj-thermal", 47968)]):
        put(tmp_path, f"sys/class/thermal/thermal_zone{n}", type=zone, temp=temp)
    put(tmp_path, "sys/class/thermal/thermal_zone3", type="cv1-thermal", temp="")
    reading = SysfsMeter(Files(tmp_path)).read()
    assert reading.gpu_frequency_hz == 510_000_000
    assert reading.gpu_utilization == 0.437
    assert reading.temperatures_celsius == {"gpu": 43.437, "tj": 47.968}


def test_temperatures_are_read_twice_a_second_and_power_each_time(tmp_path: Path) -> None:
    real, files = orin_nano(tmp_path), Files(tmp_path)
    put(tmp_path, "sys/class/thermal/thermal_zone0", type="gpu-thermal", temp=43437)
    now = [0.0]
    meter = SysfsMeter(files, lambda: now[0])
    for step in range(100):
        now[0] = step * 0.01
        meter.read()
    assert files.reads[f"{real}/curr1_input"] == 100
    assert files.reads["/sys/class/thermal/thermal_zone0/temp"] == 2


def test_a_machine_with_nothing_to_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="no power monitor, GPU clock or temperature"):
        SysfsMeter(Files(tmp_path)).read()
