"""The GPU's node is found by what it is, on every board layout that is known and on those that are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traingov.device.discovery import find_gpu, gpu_load, gpu_nodes
from traingov.device.files import SystemFiles


def make_node(root: Path, real: str, *, table: str | None = "306000000 408000000\n", class_link: bool = True) -> Path:
    folder = root / real.lstrip("/")
    folder.mkdir(parents=True)
    (folder / "min_freq").write_text("306000000\n")
    (folder / "max_freq").write_text("408000000\n")
    (folder / "available_governors").write_text("nvhost_podgov userspace\n")
    if table is not None:
        (folder / "available_frequencies").write_text(table)
    if class_link:
        above = root / "sys/class/devfreq"
        above.mkdir(parents=True, exist_ok=True)
        (above / folder.name).symlink_to(os.path.relpath(folder, above))
    return folder


# Board: (the GPU's real path, other devfreq nodes beside it, text of device/of_node/name or None, folder of `load`).
LAYOUTS = {
    "Nano, R32": ("/sys/devices/57000000.gpu/devfreq/57000000.gpu", (), "gpu", "/sys/devices/57000000.gpu"),
    "TX2, R32": ("/sys/devices/17000000.gp10b/devfreq/17000000.gp10b", (), "gp10b", "/sys/devices/17000000.gp10b"),
    "Xavier NX": (
        "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b",
        ("/sys/devices/13e10000.host1x/15340000.vic/devfreq/15340000.vic",),
        None,
        "/sys/devices/17000000.gv11b",
    ),
    "Orin, R35": (
        "/sys/devices/17000000.ga10b/devfreq/17000000.ga10b",
        ("/sys/devices/platform/host1x/15480000.nvdec/devfreq/15480000.nvdec",),
        "ga10b",
        "/sys/devices/17000000.ga10b",
    ),
    "Orin, R36": (
        "/sys/devices/platform/bus@0/17000000.gpu/devfreq/17000000.gpu",
        ("/sys/devices/platform/bus@0/13e00000.host1x/15340000.vic/devfreq/15340000.vic",),
        None,
        "/sys/devices/platform/bus@0/17000000.gpu",
    ),
    "Thor": (
        "/sys/devices/pci0000:00/0000:01:00.0/devfreq/gpu-gpc-0",
        (
            "/sys/devices/pci0000:00/0000:01:00.0/devfreq/gpu-nvd-0",
            "/sys/devices/platform/bwmgr/devfreq/bwmgr",
        ),
        None,
        None,
    ),
    "a board to come": ("/sys/devices/platform/soc/1f000000.gx42c/devfreq/1f000000.gx42c", (), None, None),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_the_gpu_is_found_on_every_layout(
    tmp_path: Path, layout: tuple[str, tuple[str, ...], str | None, str | None]
) -> None:
    real, others, of_node, load = layout
    for other in others:
        make_node(tmp_path, other)
    folder = make_node(tmp_path, real)
    if of_node is not None:
        (folder / "device/of_node").mkdir(parents=True)
        (folder / "device/of_node/name").write_bytes(of_node.encode() + b"\0")
    if load is not None:
        (tmp_path / load.lstrip("/") / "load").write_text("412\n")
    files = SystemFiles(str(tmp_path))
    node = find_gpu(files)
    assert node is not None
    assert (node.path, node.name) == (real, real.rsplit("/", 1)[1])
    assert node.available_frequencies_hz == (306_000_000, 408_000_000)
    assert node.available_governors == ("nvhost_podgov", "userspace")
    assert gpu_load(files, node) == (0.412 if load else None)
    assert node.evidence


def test_an_alias_of_the_same_node_does_not_make_it_two(tmp_path: Path) -> None:
    make_node(tmp_path, "/sys/devices/57000000.gpu/devfreq/57000000.gpu")
    (tmp_path / "sys/devices/gpu.0").symlink_to("57000000.gpu")
    (tmp_path / "sys/devices/platform").mkdir()
    (tmp_path / "sys/devices/platform/gpu.0").symlink_to("../57000000.gpu")
    (tmp_path / "sys/devices/gpu.0/load").write_text("7\n")
    nodes = gpu_nodes(SystemFiles(str(tmp_path)))
    assert [node.path for node in nodes] == ["/sys/devices/57000000.gpu/devfreq/57000000.gpu"]


def test_the_alias_alone_is_enough(tmp_path: Path) -> None:
    make_node(tmp_path, "/sys/devices/gpu.0/devfreq/mystery", class_link=False)
    node = find_gpu(SystemFiles(str(tmp_path)))
    assert node is not None
    assert node.evidence == ("below /sys/devices/gpu.0",)


def test_the_device_tree_or_the_driver_tells_where_the_name_does_not(tmp_path: Path) -> None:
    folder = make_node(tmp_path, "/sys/devices/soc/devfreq/1f000000.engine")
    files = SystemFiles(str(tmp_path))
    assert find_gpu(files) is None
    (folder / "device/of_node").mkdir(parents=True)
    (folder / "device/of_node/compatible").write_bytes(b"nvidia,ga10b\0nvidia,something\0")
    node = find_gpu(files)
    assert node is not None
    assert node.evidence == ("of_node/compatible nvidia,ga10b",)
    (tmp_path / "sys/bus/platform/drivers/nvgpu").mkdir(parents=True)
    (folder / "device/driver").symlink_to(
        os.path.relpath(tmp_path / "sys/bus/platform/drivers/nvgpu", folder / "device")
    )
    node = find_gpu(files)
    assert node is not None
    assert "driver nvgpu" in node.evidence


def test_other_engines_are_never_taken_for_the_gpu(tmp_path: Path) -> None:
    for name in ("15340000.vic", "154c0000.nvenc", "15880000.nvdla0", "bwmgr", "gpu-nvd-0", "gpu-sys-0"):
        make_node(tmp_path, f"/sys/devices/{name}.parent/devfreq/{name}")
    assert find_gpu(SystemFiles(str(tmp_path))) is None


def test_a_gpu_that_appears_after_the_start_is_found_when_looked_for_again(tmp_path: Path) -> None:
    files = SystemFiles(str(tmp_path))
    assert find_gpu(files) is None, "an empty tree is no error"
    folder = make_node(tmp_path, "/sys/devices/17000000.ga10b/devfreq/17000000.ga10b")
    (folder / "max_freq").rename(folder / "not_yet")
    assert find_gpu(files) is None, "a folder without both bounds is no node"
    (folder / "not_yet").rename(folder / "max_freq")
    assert find_gpu(files) is not None


@pytest.mark.parametrize("table", [None, "", "rubbish\n"])
def test_a_node_without_a_clock_table_says_so(tmp_path: Path, table: str | None) -> None:
    make_node(tmp_path, "/sys/devices/57000000.gpu/devfreq/57000000.gpu", table=table)
    node = find_gpu(SystemFiles(str(tmp_path)))
    assert node is not None
    assert node.available_frequencies_hz == ()
    assert node.note is not None
    assert "306000000 and 408000000" in node.note


def test_a_link_that_leads_in_circles_or_nowhere_is_not_fatal(tmp_path: Path) -> None:
    above = tmp_path / "sys/class/devfreq"
    above.mkdir(parents=True)
    (above / "circle.gpu").symlink_to("circle.gpu")
    (above / "gone.gpu").symlink_to("../../devices/gone")
    assert find_gpu(SystemFiles(str(tmp_path))) is None


def test_an_absolute_link_stays_inside_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "proc").mkdir(parents=True)
    outside.mkdir()
    (outside / "model").write_text("not of this board")
    (root / "sys/firmware/devicetree/base").mkdir(parents=True)
    (root / "sys/firmware/devicetree/base/model").write_text("a board\0")
    (root / "proc/device-tree").symlink_to("/sys/firmware/devicetree/base")
    (root / "escape").symlink_to("../../../../../../.." + str(outside))
    files = SystemFiles(str(root))
    assert files.read_text("/proc/device-tree/model") == "a board\0"
    assert not files.exists("/escape/model")


@pytest.mark.parametrize("load", ["1001", "-3", "busy", ""])
def test_a_load_that_makes_no_sense_is_missing_and_not_zero(tmp_path: Path, load: str) -> None:
    make_node(tmp_path, "/sys/devices/57000000.gpu/devfreq/57000000.gpu")
    (tmp_path / "sys/devices/57000000.gpu/load").write_text("5\n")
    files = SystemFiles(str(tmp_path))
    node = find_gpu(files)
    assert node is not None
    assert gpu_load(files, node) == 0.005
    (tmp_path / "sys/devices/57000000.gpu/load").write_text(load)
    assert gpu_load(files, node) is None
