"""The udev rule, read as udev(7) reads it: which nodes it takes, and what its command does to one.

udev itself is not run: it does not run in the machines of the system tests either. `udevadm verify` looks at the syntax
where it is new enough (systemd 254).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
RULE = REPOSITORY / "packaging" / "udev" / "traingov.udev"
TREES = sorted((REPOSITORY / "tests" / "golden" / "boards").glob("*/tree.json"))
_PART = re.compile(r'(\w+)(==|\+=)"((?:[^"\\]|\\.)*)"')


def parts() -> dict[str, str]:
    """The rule's keys and their values; one rule, on one line."""
    lines = [line for line in RULE.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) == 1
    found = _PART.findall(lines[0])
    assert ", ".join(f'{key}{sign}"{value}"' for key, sign, value in found) == lines[0]
    return {key: value for key, _, value in found}


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.parent.name)
def test_the_rule_takes_the_gpu_of_every_recorded_board_and_no_other_devfreq_node(tree: Path) -> None:
    nodes = set(re.findall(r"/devfreq/([^/\"]+)", tree.read_text()))
    taken = {node for node in nodes if any(fnmatchcase(node, one) for one in parts()["KERNEL"].split("|"))}
    read = json.loads((tree.with_name("read.json")).read_text())
    gpu = re.search(r"/devfreq/([^/\"]+)", json.dumps(read))
    assert gpu is not None
    assert taken == {gpu.group(1)}
    assert parts()["SUBSYSTEM"] == "devfreq"


@pytest.mark.skipif(os.geteuid() != 0, reason="changing a file's group takes root")
def test_the_command_opens_the_three_knobs_to_the_group_and_nothing_else(tmp_path: Path) -> None:
    names = ("min_freq", "max_freq", "governor")
    for name in (*names, "cur_freq"):
        (tmp_path / name).write_text("1\n")
        (tmp_path / name).chmod(0o644)
    # As udev does: $devpath is the device's path below /sys, $$ is a dollar.
    command = parts()["RUN"].replace("/sys$devpath", str(tmp_path)).replace("$$", "$")
    program = re.fullmatch(r"/bin/sh -c '(.*)'", command)
    assert program is not None
    group = "nogroup" if "nogroup" in Path("/etc/group").read_text() else "nobody"
    subprocess.run(["/bin/sh", "-c", program.group(1).replace("devfreq $f", f"{group} $f")], check=True)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"min_freq": 0o664, "max_freq": 0o664, "governor": 0o664, "cur_freq": 0o644}
    assert {path.name for path in tmp_path.iterdir() if path.group() == group} == set(names)


def test_udev_finds_no_fault_in_the_rule() -> None:
    udevadm = shutil.which("udevadm")
    if udevadm is None or subprocess.run([udevadm, "verify", "--help"], capture_output=True, check=False).returncode:
        pytest.skip("udevadm verify is not here (systemd 254)")
    subprocess.run([udevadm, "verify", "--no-style", str(RULE)], check=True)
