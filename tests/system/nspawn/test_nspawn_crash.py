"""A governed job in a real systemd, and the service killed, stopped, hung and misled under it.

After each: the knobs are back, the job trains on, and the journal says what happened.
"""

from __future__ import annotations

import json
import os
import random
import time

import pytest
from machine import PINNED_HZ, Machine, wait_for

pytestmark = pytest.mark.system

NANO_HZ = (76_800_000, 921_600_000)
KILLS = int(os.environ.get("TRAINGOV_KILLS", "5"))


def main_pid(machine: Machine) -> int:
    return int(machine.show("MainPID"))


def saw_original(machine: Machine, seconds: float) -> float:
    """Seconds until the bounds are the original ones; they may be pinned again soon after, for the same job."""
    begin_s = time.monotonic()
    wait_for(lambda: machine.bounds_hz() == NANO_HZ, seconds, "the bounds come back")
    return time.monotonic() - begin_s


def pinned_within(machine: Machine, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not machine.pinned():
        time.sleep(0.02)
    return machine.pinned()


def test_after_sigkill_systemd_gives_the_clock_back_starts_anew_and_the_job_returns(training: Machine) -> None:
    cursor, killed = training.cursor(), main_pid(training)
    training.run(f"kill -KILL {killed}")
    took_s = saw_original(training, 10)
    print(f"SIGKILL: bounds back after {took_s:.2f} s")
    training.trains_on()
    wait_for(training.pinned, 20, "the service is back, the job has returned, and its clock is set again")
    assert main_pid(training) != killed
    said = training.journal(cursor)
    assert f"restored to {NANO_HZ[1]}" in said
    assert "code=killed, status=9/KILL" in said
    assert "setpriv" not in said


def test_a_hung_service_is_ended_by_the_watchdog_and_the_clock_comes_back(training: Machine) -> None:
    cursor, hung = training.cursor(), main_pid(training)
    training.run(f"kill -STOP {hung}")
    took_s = saw_original(training, 15)
    print(f"SIGSTOP: bounds back after {took_s:.2f} s, WatchdogSec={training.show('WatchdogUSec')}")
    training.trains_on()
    wait_for(training.pinned, 20, "the service is back, and the clock is set again")
    said = training.journal(cursor)
    assert "Watchdog timeout" in said
    assert f"restored to {NANO_HZ[1]}" in said


def test_a_stop_under_load_sticks_although_the_job_would_come_back(training: Machine) -> None:
    cursor = training.cursor()
    training.run("systemctl stop traingov")
    assert training.bounds_hz() == NANO_HZ
    training.trains_on()
    time.sleep(2)  # the job tries to reconnect after half a second, then after a second
    assert training.show("ActiveState") == "inactive"
    assert training.show("ActiveState", "traingov.socket") == "inactive"
    assert training.bounds_hz() == NANO_HZ
    assert "restore: " in training.journal(cursor)
    training.run("systemctl start traingov")
    wait_for(training.pinned, 30, "the job comes back by itself")


def test_a_restart_under_load_gives_back_and_governs_again(training: Machine) -> None:
    before = main_pid(training)
    training.run("systemctl restart traingov")
    assert main_pid(training) != before
    assert training.show("ActiveState", "traingov.socket") == "active"
    wait_for(training.pinned, 20, "the job comes back by itself")
    training.trains_on()


def test_the_journal_can_be_asked_for_one_job_and_for_the_knob(training: Machine) -> None:
    ask = "journalctl -q --no-pager -o cat -u traingov.service"
    assert "registered by traingov-client" in training.run(f"{ask} JOB=resnet18")
    node = training.run("traingov status --json").partition('"gpu_node": "')[2].partition('"')[0]
    assert "GPU clock to 460.8 MHz" in training.run(f"{ask} KNOB={node}")
    assert "registered" not in training.run(f"{ask} KNOB={node}")


def test_a_job_killed_gives_the_clock_back_and_the_service_goes_on(training: Machine) -> None:
    service = main_pid(training)
    training.run(f"systemctl kill -s KILL {training.job}")
    saw_original(training, 10)
    assert main_pid(training) == service


def test_a_reload_takes_a_new_clock_policy_over_and_a_wrong_file_changes_nothing(training: Machine) -> None:
    service, cursor = main_pid(training), training.cursor()
    training.configure(policy="fixed", fixed={"gpu_frequency_hz": PINNED_HZ}, cap={"power_w": "much"})
    training.run("systemctl reload traingov")
    wait_for(lambda: "the old configuration stays" in training.journal(cursor), 5, "the wrong file is refused")
    assert "board.yaml:1: cap" in training.journal(cursor)
    wait_for(lambda: "old configuration stays" in training.show("StatusText"), 5, "systemctl status says so too")
    assert training.pinned()

    training.configure(policy="observe", fixed={"gpu_frequency_hz": PINNED_HZ})
    training.run("systemctl reload traingov")
    wait_for(lambda: training.bounds_hz() == NANO_HZ, 5, "observe gives the clock back")
    assert "taken over: policy" in training.journal(cursor)
    training.configure(policy="fixed", fixed={"gpu_frequency_hz": PINNED_HZ})
    training.run("systemctl reload traingov")
    wait_for(training.pinned, 5, "and fixed pins it again")
    assert main_pid(training) == service, "no restart, so no job was dropped"


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ("wrong", "board.yaml:1: policy: 'quick' is not one of"),
        ("unreadable", "board.yaml: cannot be read: Permission"),
    ],
)
def test_a_bad_configuration_ends_with_one_line_and_no_loop_of_restarts(
    board: Machine, trouble: str, says: str
) -> None:
    cursor = board.cursor()
    if trouble == "wrong":
        board.configure(policy="quick")
    else:
        board.run("chmod 600 /etc/traingov/conf.d/board.yaml")
    try:
        board.fails("systemctl restart traingov")
        time.sleep(2.5)
        assert board.show("ExecMainStatus") == "2"
        assert board.show("NRestarts") == "0"
        lines = [line for line in board.journal(cursor).splitlines() if line.startswith("traingovd: ")]
        assert len(lines) == 1
        assert says in lines[0]
    finally:
        board.configure(policy="fixed", fixed={"gpu_frequency_hz": PINNED_HZ})
        board.run("chmod 644 /etc/traingov/conf.d/board.yaml")


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_without_a_place_for_the_originals_nothing_is_written_and_the_job_trains(board: Machine, trouble: str) -> None:
    state = "/var/lib/traingov"
    board.run("systemctl stop traingov; systemctl reset-failed traingov.service traingov.socket", check=False)
    board.run(f"mount -t tmpfs -o size=16k,mode=750,uid=traingov,gid=traingov tmpfs {state}")
    try:
        board.run(f"dd if=/dev/zero of={state}/filler bs=4k 2>/dev/null; true")
        if trouble == "read-only":
            board.run(f"rm {state}/filler && mount -o remount,ro {state}")
        cursor = board.cursor()
        board.run("systemctl start traingov")
        board.start_job()
        wait_for(lambda: "so nothing is written" in board.journal(cursor), 10, "the journal says why")
        board.trains_on()
        assert board.bounds_hz() == NANO_HZ
    finally:
        board.stop_job()
        board.run(f"systemctl stop traingov; umount {state}; systemctl start traingov", check=False)


def test_seven_crashes_one_after_another_do_not_keep_it_down(board: Machine) -> None:
    board.run("systemctl reset-failed traingov.service traingov.socket; systemctl restart traingov", check=False)
    for number in range(7):
        before = main_pid(board)
        board.run(f"kill -KILL {before}")
        wait_for(
            lambda old=before: board.show("ActiveState") == "active" and main_pid(board) not in (0, old),
            10,
            f"crash {number}: it is back",
        )
    assert board.show("ActiveState", "traingov.socket") == "active"


def test_sigkill_at_random_instants_always_gives_the_clock_back(board: Machine) -> None:
    drop_in = "/etc/systemd/system/traingov.service.d/loop.conf"
    board.put(drop_in, "[Unit]\nStartLimitIntervalSec=0\n")
    board.run("systemctl daemon-reload; systemctl reset-failed; systemctl restart traingov", check=False)
    board.start_job()
    dice, times_s, held = random.Random(20261130), [], 0
    try:
        for number in range(KILLS):
            if number % 2:  # every other time in mid-flight: starting, registering, writing the first clock
                time.sleep(dice.uniform(0, 1.5))
            else:
                if not pinned_within(board, 5):
                    # A job doubles its wait after each attempt that failed, up to a minute: a new one is quicker.
                    board.stop_job()
                    board.start_job()
                    said = f"kill {number}: a new job's clock is not pinned within 30 s\n"
                    assert pinned_within(board, 30), said + board.run("journalctl -q -n 60 --no-pager", check=False)
                time.sleep(dice.uniform(0, 0.3))
            restarts = int(board.show("NRestarts"))
            held += board.pinned()
            cursor = board.cursor()
            board.run("systemctl kill -s KILL --kill-who=main traingov", check=False)
            try:
                times_s.append(saw_original(board, 10))
            except AssertionError as error:
                state = board.run("ls -la /var/lib/traingov; cat /var/lib/traingov/*.json", check=False)
                raise AssertionError(
                    f"kill {number}: {error}; {board.bounds_hz()}\n{board.journal(cursor)}{state}"
                ) from None
            wait_for(lambda before=restarts: int(board.show("NRestarts")) > before, 20, f"kill {number}: started anew")
        board.trains_on()
    finally:
        board.stop_job()
        (board.root / drop_in.lstrip("/")).unlink()
        board.run("systemctl daemon-reload")
    wait_for(lambda: board.bounds_hz() == NANO_HZ, 10, "the bounds are as found")
    print(json.dumps({"kills": KILLS, "clock_was_pinned": held, "worst_s": max(times_s)}))
    assert max(times_s) <= 2.0


def test_a_shutdown_under_load_leaves_the_knobs_as_found(board: Machine) -> None:
    board.run("systemctl start traingov", check=False)
    board.start_job()
    wait_for(board.pinned, 30, "the clock is pinned")
    board.power_off()
    assert board.bounds_hz() == NANO_HZ
