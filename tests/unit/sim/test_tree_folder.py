"""The virtual board's tree in a plain folder."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from traingov_sim.board.battery import Battery
from traingov_sim.board.boardspec import board_names, load_board, noiseless
from traingov_sim.board.overcurrent import CurrentLimits
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.board.surroundings import Surroundings
from traingov_sim.kernel.entries import boot_id
from traingov_sim.kernel.tree import FolderTree


class Virtual:
    """A board and its tree, in pseudo-time."""

    def __init__(self, name: str, root: Path) -> None:
        self.board = VirtualBoard(noiseless(load_board(name)))
        self.root = root
        self.tree = FolderTree(root, self.board, boot_id(0, 1), threading.Lock())
        self.node = root / "sys" / "class" / "devfreq" / self.board.spec.gpu.devfreq

    def read(self, name: str) -> str:
        return (self.node / name).read_text().strip()


@pytest.fixture
def nano(tmp_path: Path) -> Virtual:
    return Virtual("nano", tmp_path / "root")


@pytest.mark.parametrize("name", board_names())
def test_the_tree_holds_what_identifies_the_board_and_its_clock(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    spec = virtual.board.spec
    assert (virtual.root / "proc/device-tree/model").read_bytes() == spec.model.encode() + b"\0"
    assert (virtual.root / "etc/nv_tegra_release").read_text().startswith("# R3")
    assert len((virtual.root / "proc/sys/kernel/random/boot_id").read_text().strip()) == 36
    assert virtual.read("available_frequencies").split() == [str(hz) for hz in spec.gpu.frequencies_hz]
    assert virtual.read("cur_freq") == str(spec.gpu.frequencies_hz[0])
    of_node, load = virtual.node / "device" / "of_node" / "name", virtual.node / "device" / "load"
    assert not of_node.exists() if spec.gpu.node_name == "" else of_node.read_text() == spec.gpu.node_name + "\0"
    assert load.read_text().strip() == "0" if spec.gpu.load else not load.exists()
    assert f"ID={spec.default_power_mode}" in (virtual.root / "etc/nvpmodel.conf").read_text()
    status = (virtual.root / "var/lib/nvpmodel/status").read_text()
    assert status == f"pmode:{spec.default_power_mode:04d} fmode:fanNull\n"


@pytest.mark.parametrize("name", board_names())
def test_every_link_stays_inside_the_tree(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    links = [p for p in virtual.root.rglob("*") if p.is_symlink()]
    assert links
    for link in links:
        assert not os.readlink(link).startswith("/")
        assert link.resolve(strict=True).is_relative_to(virtual.root.resolve())


@pytest.mark.parametrize("name", board_names())
def test_the_power_monitors_files_agree_with_the_sensors(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    snapshot = virtual.board.sensors(5.0)
    virtual.tree.refresh(snapshot)
    for rail, reading in zip(virtual.board.spec.rails, snapshot.readings, strict=True):
        assert reading is not None
        chip = virtual.board.spec.chips[rail.chip]
        folder, n = virtual.root / chip.path, rail.channel
        if chip.kind == "iio":
            assert (folder / f"rail_name_{n}").read_text().strip() == rail.name
            assert int((folder / f"in_power{n}_input").read_text()) == reading.milliwatts
        elif chip.kind == "ina238":
            assert int((folder / "power1_input").read_text()) == reading.milliwatts * 1000
            assert not (folder / "in1_label").exists()
        else:
            assert (folder / f"in{n + 1}_label").read_text().strip() == rail.name
            volts = int((folder / f"in{n + 1}_input").read_text())
            amperes = int((folder / f"curr{n + 1}_input").read_text())
            assert volts * amperes // 1000 == reading.milliwatts


def test_a_write_is_snapped_in_the_file_and_reaches_the_clock_after_the_delay(nano: Virtual) -> None:
    (nano.node / "max_freq").write_text("300000000\n")
    (nano.node / "min_freq").write_text("307200000")
    assert nano.tree.poll(1.0)
    assert nano.read("max_freq") == "307200000"
    assert nano.read("min_freq") == "307200000"
    nano.tree.refresh_clocks(nano.board.sensors(1.5))
    assert nano.read("cur_freq") == "76800000"
    nano.tree.refresh_clocks(nano.board.sensors(1.7))
    assert nano.read("cur_freq") == "307200000"
    assert not nano.tree.poll(1.8)


@pytest.mark.parametrize("text", ["fast", "-5", "1e9", "921600000 x"])
def test_text_that_is_no_frequency_is_put_back(nano: Virtual, text: str) -> None:
    (nano.node / "max_freq").write_text(text)
    nano.tree.poll(1.0)
    assert nano.read("max_freq") == "921600000"
    assert nano.tree.refused[-1].endswith("max_freq: Invalid argument")


def test_a_minimum_above_the_maximum_is_refused_on_r32_and_clamped_on_r36(nano: Virtual, tmp_path: Path) -> None:
    (nano.node / "max_freq").write_text("307200000")
    nano.tree.poll(1.0)
    (nano.node / "min_freq").write_text("921600000")
    nano.tree.poll(1.1)
    assert (nano.read("min_freq"), nano.read("max_freq")) == ("76800000", "307200000")
    orin = Virtual("agx-orin", tmp_path / "orin")
    (orin.node / "max_freq").write_text("510000000")
    orin.tree.poll(1.0)
    (orin.node / "min_freq").write_text("1300500000")
    orin.tree.poll(1.1)
    assert (orin.read("min_freq"), orin.read("max_freq")) == ("510000000", "510000000")


@pytest.mark.parametrize("name", ["nano", "agx-orin"])
def test_both_bounds_written_between_two_polls_take_effect_whichever_way_they_go(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    table = virtual.board.spec.gpu.frequencies_hz
    for step in (table[-1], table[2], table[5], table[0], table[-1]):
        (virtual.node / "min_freq").write_text(str(step))
        (virtual.node / "max_freq").write_text(str(step))
        virtual.tree.poll(virtual.board.t_s + 0.01)
        assert virtual.board.clock.bounds() == (step, step)
        assert virtual.tree.refused == []


def test_a_file_that_was_truncated_and_not_yet_written_is_left_alone(nano: Virtual) -> None:
    with open(nano.node / "max_freq", "w") as file:
        assert not nano.tree.poll(1.0)
        file.write("153600000")
    assert nano.tree.poll(1.1)
    assert nano.board.clock.bounds()[1] == 153_600_000


def test_an_open_file_shows_the_new_value_and_never_a_mixture(nano: Virtual) -> None:
    nano.board.set_bounds(921_600_000, 921_600_000, 0.0)
    with open(nano.node / "cur_freq") as file:
        for t_s in (1.0, 2.0, 3.0):
            nano.tree.refresh_clocks(nano.board.sensors(t_s))
            file.seek(0)
            assert int(file.read()) == nano.board.clock.hz
            low = 76_800_000 if t_s == 1.0 else 614_400_000
            nano.board.set_bounds(low, low, t_s)


def test_the_userspace_governor_brings_its_file_and_holds_what_is_written_there(nano: Virtual) -> None:
    assert not (nano.node / "userspace" / "set_freq").exists()
    (nano.node / "governor").write_text("userspace")
    nano.tree.poll(1.0)
    (nano.node / "userspace" / "set_freq").write_text("460800000")
    nano.tree.poll(1.1)
    nano.tree.refresh_clocks(nano.board.sensors(3.0))
    assert nano.read("cur_freq") == "460800000"
    (nano.node / "governor").write_text("nvhost_podgov\n")
    nano.tree.poll(3.1)
    assert not (nano.node / "userspace" / "set_freq").exists()
    (nano.node / "governor").write_text("warp")
    nano.tree.poll(3.2)
    assert nano.read("governor") == "nvhost_podgov"


def test_a_power_mode_shows_in_its_status_cores_and_bounds(nano: Virtual) -> None:
    nano.board.set_power_mode(1, 1.0)
    nano.tree.refresh_mode()
    assert (nano.root / "var/lib/nvpmodel/status").read_text().startswith("pmode:0001")
    assert nano.read("max_freq") == "614400000"
    assert (nano.root / "sys/devices/system/cpu/cpu3/online").read_text().strip() == "0"


def test_a_missing_reading_shows_no_number(nano: Virtual) -> None:
    nano.board.sensor.set_fault("missing", ["POM_5V_IN"])
    nano.tree.refresh(nano.board.sensors(1.0))
    chip = nano.root / nano.board.spec.chips[0].path
    assert (chip / "in_power0_input").read_text().strip() == ""
    assert int((chip / "in_power1_input").read_text()) >= 0


def test_a_tree_can_be_made_again_over_an_old_one(nano: Virtual, tmp_path: Path) -> None:
    (nano.node / "max_freq").write_text("153600000")
    nano.tree.poll(1.0)
    nano.tree.close()
    again = Virtual("nano", tmp_path / "root")
    assert again.read("max_freq") == "921600000"


def test_another_boot_has_another_id() -> None:
    assert boot_id(0, 1) == boot_id(0, 1)
    assert len({boot_id(0, 1), boot_id(0, 2), boot_id(1, 1)}) == 3


@pytest.mark.parametrize("name", board_names())
def test_zones_have_trip_points_and_heat_shows_in_the_cooling_devices(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    thermal = virtual.root / "sys/class/thermal"
    zones = {(z / "type").read_text().strip(): z for z in thermal.glob("thermal_zone*")}
    gpu = next(z for kind, z in zones.items() if kind.lower().startswith("gpu"))
    assert (gpu / "trip_point_0_type").read_text().strip() == "passive"
    trip = int((gpu / "trip_point_0_temp").read_text())
    assert trip == int(virtual.board.spec.thermal.trip_celsius * 1000)
    cooling = {(c / "type").read_text().strip(): c for c in thermal.glob("cooling_device*")}
    assert (cooling["gpu-throttle-alert"] / "cur_state").read_text().strip() == "0"
    virtual.board.thermal.throttle_steps = 3
    virtual.tree.refresh(virtual.board.sensors(0.0))
    assert (cooling["gpu-throttle-alert"] / "cur_state").read_text().strip() == "1"
    steps = next(c for kind, c in cooling.items() if kind.startswith(("devfreq-", "gpu-balanced")))
    assert (steps / "cur_state").read_text().strip() == "3"


def test_over_current_counters_and_limits_are_there_on_the_orin_only(tmp_path: Path) -> None:
    names = {}
    for board in ("agx-orin", "nano"):
        virtual = Virtual(board, tmp_path / board)
        names[board] = [p.read_text().strip() for p in virtual.root.glob("sys/class/hwmon/*/name")]
    assert "soctherm_oc" in names["agx-orin"]
    assert names["nano"] == []
    orin = Virtual("agx-orin", tmp_path / "again")
    hwmon = next(p for p in orin.root.glob("sys/class/hwmon/*") if (p / "name").read_text() == "soctherm_oc\n")
    assert [(hwmon / f"oc{n}_event_cnt").read_text() for n in (1, 2, 3)] == ["0\n"] * 3
    orin.board.over_current.set_limits({"VDD_GPU_SOC": CurrentLimits(max_a=2.0, crit_a=2.5)})
    orin.board.over_current.counts = (0, 1, 20)
    orin.tree.refresh(orin.board.sensors(0.0))
    orin.tree.refresh_surroundings()
    assert [(hwmon / f"oc{n}_event_cnt").read_text().strip() for n in (1, 2, 3)] == ["0", "1", "20"]
    monitor = orin.root / orin.board.spec.chips[0].path
    assert [(monitor / f"curr1_{w}").read_text().strip() for w in ("max", "crit")] == ["2000", "2500"]
    assert (monitor / "curr2_max").read_text().strip() == "32760"


def test_a_battery_comes_goes_and_shows_its_charge(nano: Virtual) -> None:
    supply = nano.root / "sys/class/power_supply/BAT0"
    assert not supply.exists()
    for charge in (0.805, 0.3):
        nano.board.battery = Battery(capacity_wh=50.0, charge=charge)
        nano.tree.refresh_surroundings()
        assert (supply / "type").read_text().strip() == "Battery"
        assert (supply / "capacity").read_text().strip() == str(round(charge * 100))
        nano.board.advance(nano.board.t_s + 1.0)
        nano.tree.refresh(nano.board.sensors(nano.board.t_s))
        assert (supply / "status").read_text().strip() == "Discharging"
        watts = int((supply / "power_now").read_text()) / 1e6
        assert watts == pytest.approx(nano.board.truth(nano.board.t_s).input_w / 0.9, rel=0.01)
        nano.board.battery = None
        nano.tree.refresh_surroundings()
        assert not supply.exists()
        assert not (nano.root / "sys/devices/platform/battery/power_supply/BAT0/type").exists()


@pytest.mark.parametrize("name", board_names())
def test_the_memorys_clock_is_shown_and_follows_its_cap(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    emc = virtual.board.spec.emc
    shown = {what: virtual.root / path for path, what in emc.files.items()}
    assert shown["rate"].read_text().strip() == str(emc.frequencies_hz[-1])
    virtual.board.set_surroundings(Surroundings(emc_hz=emc.frequencies_hz[1]), 0.0)
    virtual.tree.refresh(virtual.board.sensors(0.0))
    assert shown["rate"].read_text().strip() == str(emc.frequencies_hz[1])
    if "cap" in shown:
        assert shown["cap"].read_text().strip() == str(emc.frequencies_hz[1])


def test_thor_has_a_node_for_each_clock_of_its_gpu_and_one_for_the_memory(tmp_path: Path) -> None:
    virtual = Virtual("thor", tmp_path / "root")
    nodes = {path.name for path in (virtual.root / "sys/class/devfreq").iterdir()}
    assert nodes == {"gpu-gpc-0", "gpu-nvd-0", "bwmgr"}
    assert (virtual.root / "sys/class/devfreq/bwmgr/cur_freq").read_text() == "4266000000\n"
    assert (virtual.root / "sys/class/devfreq/gpu-nvd-0/max_freq").read_text() == "1575000000\n"


@pytest.mark.parametrize("name", board_names())
def test_a_power_monitor_is_reached_by_its_driver_its_bus_address_and_its_class(name: str, tmp_path: Path) -> None:
    virtual = Virtual(name, tmp_path / "root")
    for chip in virtual.board.spec.chips:
        folder = virtual.root / chip.path
        address = next(part for part in Path(chip.path).parts if re.fullmatch(r"\d-00\d\d", part))
        device = virtual.root / "sys/bus/i2c/devices" / address
        assert (device / "name").read_text() == chip.label + "\n"
        listed = "iio/devices" if chip.kind == "iio" else "class/hwmon"
        above = virtual.root / "sys" / (f"bus/{listed}" if chip.kind == "iio" else listed)
        assert (above / folder.name).resolve() == folder.resolve()
        assert folder.resolve().is_relative_to(device.resolve())
