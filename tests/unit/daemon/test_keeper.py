"""The thread that writes for the loop: whatever goes wrong is said, and the next write is done all the same."""

from __future__ import annotations

import logging

import pytest

from traingov.keeper import Keeper


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device"), "the table could not be kept (No space left on device)"),
        (ValueError("odd"), "the table could not be kept; this must not happen"),
    ],
)
def test_a_write_that_fails_is_told_and_the_next_one_is_done(
    error: Exception, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise error

    done: list[str] = []
    keeper = Keeper()
    with caplog.at_level(logging.ERROR):
        keeper.keep("the table", fails)
        keeper.keep("another", lambda: done.append("another"))
        keeper.close()
    assert says in caplog.text
    assert done == ["another"]
