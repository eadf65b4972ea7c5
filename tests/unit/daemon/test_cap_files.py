"""What the cap file, the battery and the kept caps look like on disk, whole, odd and damaged."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from traingov.caps.battery import read_batteries
from traingov.caps.capfile import look_at
from traingov.caps.kept import read_claims, write_claims
from traingov.device.files import SystemFiles
from traingov_policies.caps import Battery, Claim
from traingov_policies.values import Cap

# -- the file that another program writes ----------------------------------------------------------------------------


def test_a_plain_file_is_read_and_a_rewritten_one_has_another_stamp(tmp_path: Path) -> None:
    file = tmp_path / "cap"
    file.write_text("7\n")
    first = look_at(str(file))
    assert (first.content, first.error) == (b"7\n", None)
    assert look_at(str(file)) == first
    (tmp_path / "new").write_text("7\n")
    (tmp_path / "new").replace(file)
    assert look_at(str(file)).stamp != first.stamp


def test_links_pipes_devices_folders_and_sockets_are_never_opened(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("7\n")
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("link", "dangling", "pipe", "folder", "socket"):
            look = look_at(str(tmp_path / name))
            assert (look.content, look.error and look.error[:16]) == (None, "is no plain file"), name
    assert (look_at("/dev/zero").error or "").startswith("is no plain file")


def test_a_missing_a_huge_and_a_world_writable_file_are_told_apart(tmp_path: Path) -> None:
    assert look_at(str(tmp_path / "none")).error == "is not there"
    huge = tmp_path / "huge"
    huge.write_bytes(b"7" * 100_000)
    assert len(look_at(str(huge)).content or b"") == 4097, "one byte more than is allowed, and no more"
    anybody = tmp_path / "anybody"
    anybody.write_text("7\n")
    anybody.chmod(0o666)
    assert "chmod o-w" in (look_at(str(anybody)).error or "")


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything; this needs another user")
def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "cap"
    file.write_text("7\n")
    file.chmod(0)
    assert look_at(str(file)).error == "cannot be read (Permission denied)"


# -- the battery -----------------------------------------------------------------------------------------------------


def supply(root: Path, name: str, **files: str) -> None:
    folder = root / "sys/class/power_supply" / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(f"{text}\n")


def batteries(root: Path) -> list[Battery]:
    return read_batteries(SystemFiles(str(root)))


def test_a_battery_is_read_in_percent_and_watts(tmp_path: Path) -> None:
    supply(tmp_path, "BAT0", type="Battery", capacity="42", status="Discharging", power_now="7250000")
    assert batteries(tmp_path) == [Battery("BAT0", 42.0, "Discharging", 7.25)]


def test_power_is_current_times_voltage_whatever_the_sign_of_the_current(tmp_path: Path) -> None:
    supply(tmp_path, "a", type="Battery", capacity="42", status="Discharging", current_now="-600000",
           voltage_now="12000000")  # fmt: skip
    assert batteries(tmp_path) == [Battery("a", 42.0, "Discharging", pytest.approx(7.2))]


def test_charge_is_taken_from_energy_or_charge_where_there_is_no_capacity(tmp_path: Path) -> None:
    supply(tmp_path, "a", type="Battery", energy_now="10000000", energy_full="40000000")
    supply(tmp_path, "b", type="Battery", charge_now="900000", charge_full="1000000")
    assert [b.percent for b in batteries(tmp_path)] == [25.0, 90.0]


def test_chargers_usb_ports_and_the_batteries_of_other_devices_are_passed_over(tmp_path: Path) -> None:
    supply(tmp_path, "ucsi-source-psy-1", type="USB", online="1")
    supply(tmp_path, "AC", type="Mains", online="1")
    supply(tmp_path, "hidpp_battery_0", type="Battery", scope="Device", capacity="9", status="Discharging")
    supply(tmp_path, "empty-slot", type="Battery", present="0", capacity="0")
    supply(tmp_path, "BAT", type="Battery", scope="System", present="1", capacity="77", status="Full")
    assert batteries(tmp_path) == [Battery("BAT", 77.0, "Full", None)]


@pytest.mark.parametrize("text", ["", "n/a", "-5", "4e1", "999", "\0\0"])
def test_a_charge_that_is_none_is_missing_and_never_0(tmp_path: Path, text: str) -> None:
    supply(tmp_path, "BAT", type="Battery", capacity=text, status="Discharging", power_now="x")
    assert batteries(tmp_path) == [Battery("BAT", None, "Discharging", None)]


def test_a_board_without_power_supplies_has_no_battery(tmp_path: Path) -> None:
    assert batteries(tmp_path) == []


# -- what was set by command -----------------------------------------------------------------------------------------


ONE = Claim("command", Cap(7.0, 2.0, 9.0), uid=1000, set_at="2026-11-30 19:00:00", override=True)
TTL = Claim("command solar", Cap(5.0), uid=0, set_at="2026-11-30 19:00:00", ttl_s=60.0, expires_s=1030.0)


def test_claims_are_kept_whole_and_a_time_to_live_counts_on_over_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "cap.json"
    write_claims(file, "boot-1", {c.source: c for c in (ONE, TTL)})
    assert read_claims(file, "boot-1", 1000.0) == {"command": ONE, "command solar": TTL}


def test_after_another_boot_a_time_to_live_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "cap.json"
    write_claims(file, "boot-1", {TTL.source: TTL})
    (claim,) = read_claims(file, "boot-2", 12.0).values()
    assert (claim.ttl_s, claim.expires_s) == (60.0, 72.0)


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "null", '{"claims": [{}], "boot": "b"}',
        '{"claims": [{"source": "x", "cap": {"power_w": -1}}], "boot": 1}',
        '{"claims": [{"source": "x", "cap": {"power_w": 5}, "ttl_s": "y"}], "boot": 1}', '{"claims": 3, "boot": 1}',
        '{"claims": [{"source": "x", "cap": {"watts": 5}}], "boot": 1}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_set_aside_and_nothing_is_in_force(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cap.json"
    file.write_text(text)
    assert read_claims(file, "b", 0.0) == {}
    assert not file.exists()
    assert (tmp_path / "cap.json.damaged-1").read_text() == text


def test_no_file_is_no_claim_and_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    file = tmp_path / "cap.json"
    assert read_claims(file, "b", 0.0) == {}
    file.write_text(json.dumps({"cap": {"power_w": 4.5, "window_s": 2.0, "burst_w": None}, "source": "uid 0, x"}))
    assert read_claims(file, "b", 0.0) == {"command": Claim("command", Cap(4.5, 2.0))}
    file.write_text(json.dumps({"cap": None, "source": "uid 0, x"}))
    assert read_claims(file, "b", 0.0) == {}
