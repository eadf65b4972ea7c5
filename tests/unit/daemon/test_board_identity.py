"""Who the board is, from files alone; unset and unreadable are "unknown" and never fatal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traingov.device.board import PowerMode, identify, power_mode
from traingov.device.files import SystemFiles

CONF = """\
< PARAM TYPE=CLOCK NAME=GPU >
MAX_FREQ /sys/devices/57000000.gpu/devfreq/57000000.gpu/max_freq
# < POWER_MODEL ID=1 NAME=COMMENTED >
< POWER_MODEL ID=0 NAME=MAXN >
CPU_ONLINE CORE_0 1
GPU MIN_FREQ 0
GPU MAX_FREQ -1
< POWER_MODEL ID=1 NAME=5W >
GPU MIN_FREQ 0
GPU MAX_FREQ 640000000
< POWER_MODEL ID=2 NAME=QUIET >
CPU_ONLINE CORE_0 1
< PM_CONFIG DEFAULT=1 >
GPU MAX_FREQ 123
"""


class Texts:
    """Files out of a table."""

    def __init__(self, **texts: str) -> None:
        self.texts = {
            "/proc/device-tree/model": texts.get("model"),
            "/proc/device-tree/compatible": texts.get("compatible"),
            "/etc/nv_tegra_release": texts.get("release"),
            "/var/lib/nvpmodel/status": texts.get("status"),
            "/etc/nvpmodel.conf": texts.get("conf"),
        }

    def read_text(self, path: str) -> str:
        text = self.texts.get(path)
        if text is None:
            raise FileNotFoundError(path)
        return text

    def write_text(self, path: str, text: str) -> None:
        raise AssertionError("identifying a board writes nothing")

    def exists(self, path: str) -> bool:
        return self.texts.get(path) is not None

    def list(self, path: str) -> tuple[str, ...]:
        raise FileNotFoundError(path)

    def real_path(self, path: str) -> str:
        return path


def test_a_board_names_itself() -> None:
    board = identify(
        Texts(
            model="NVIDIA Jetson AGX Orin Developer Kit\0",
            compatible="nvidia,p3737-0000+p3701-0005\0nvidia,p3701-0005\0nvidia,tegra234\0",
            release="# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n# more\n",
            status="pmode:0000\n",
            conf=CONF,
        )
    )
    assert board.name == "NVIDIA Jetson AGX Orin Developer Kit"
    assert board.release == "R36.4.3"
    assert board.power_mode == "MAXN"
    assert board.compatible == ("nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234")


def test_a_board_that_shows_nothing_is_unknown(tmp_path: Path) -> None:
    board = identify(SystemFiles(str(tmp_path)))
    assert (board.name, board.release, board.power_mode, board.compatible) == ("unknown", "unknown", "unknown", ())


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref\n", "R32.7.1"),
        ("# R39 (release), REVISION: 0.0, GCID: 1\n", "R39.0.0"),
        ("# R35 (release), REVISION: 5, x\n", "R35.5"),
        ("something else\n", "unknown"),
    ],
)
def test_every_release_is_taken_as_it_stands(text: str, release: str) -> None:
    assert identify(Texts(release=text)).release == release


@pytest.mark.parametrize(
    ("status", "conf", "mode"),
    [
        ("pmode:0000\n", CONF, PowerMode("MAXN", True, None)),
        ("pmode:0001 fmode:quiet\n", CONF, PowerMode("5W", True, 640_000_000)),
        ("pmode:0002 fmode:cool\n", CONF, PowerMode("QUIET", False, None)),
        ("pmode:0007\n", CONF, PowerMode("mode 7", False, None)),
        ("pmode:0008\n", None, PowerMode("mode 8", False, None)),
        ("pmode:\n", CONF, PowerMode("unknown", False, None)),
        ("", CONF, PowerMode("unknown", False, None)),
        (None, CONF, PowerMode("unknown", False, None)),
    ],
)
def test_the_power_mode_and_its_limit_are_read_without_nvpmodel(
    status: str | None, conf: str | None, mode: PowerMode
) -> None:
    texts = {name: text for name, text in (("status", status), ("conf", conf)) if text is not None}
    assert power_mode(Texts(**texts)) == mode


@given(st.text(), st.text(), st.text(), st.text(), st.text())
def test_no_text_in_these_files_is_fatal(model: str, compatible: str, release: str, status: str, conf: str) -> None:
    identify(Texts(model=model, compatible=compatible, release=release, status=f"pmode:1 {status}", conf=conf))
