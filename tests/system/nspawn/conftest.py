"""Each file of tests here has one machine, booted once, with the package installed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machine import Machine, unavailable


@pytest.fixture(scope="module")
def bare_machine() -> Iterator[Machine]:
    """A machine with the libraries that traingov needs, and nothing of traingov."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(f"no machine can be booted: {reason}")
    with Machine() as it:
        yield it


@pytest.fixture(scope="module")
def machine(bare_machine: Machine) -> Machine:
    """A machine with the package."""
    bare_machine.install()
    return bare_machine


@pytest.fixture(scope="module")
def board(machine: Machine) -> Machine:
    """The machine with a virtual board and the service pinning its clock for every job."""
    machine.start_board()
    return machine


@pytest.fixture
def training(board: Machine) -> Iterator[Machine]:
    """A governed job whose clock is pinned. The bounds are as found before it, and again after it."""
    from machine import wait_for  # noqa: PLC0415

    board.run("systemctl reset-failed traingov.service traingov.socket; systemctl start traingov", check=False)
    original = (76_800_000, 921_600_000)
    assert board.bounds_hz() == original
    board.start_job()
    try:
        wait_for(board.pinned, 15, "the clock is pinned for the job")
        yield board
    finally:
        board.stop_job()
    wait_for(lambda: board.bounds_hz() == original, 10, "the bounds are as found")
