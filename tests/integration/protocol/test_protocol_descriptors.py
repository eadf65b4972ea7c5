"""A service that has no file descriptor left: it says so in one line, and takes in who waits as soon as it can."""

import contextlib
import logging
import os
import resource
import socket

import pytest


@pytest.fixture
def no_descriptor_left():
    """Lowers this process's limit to what it has open; the returned call puts it back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(fd) for fd in os.listdir("/proc/self/fd")) + 1, before[1]))
        held = []
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        return held

    held = []
    try:
        yield lambda: held.extend(lower())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for fd in held:
            os.close(fd)


def test_without_descriptors_one_line_is_logged_and_who_waits_is_taken_in_later(
    serve, until, no_descriptor_left, caplog
):
    served = serve()
    job = served.peer()
    job.register()
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with caplog.at_level(logging.ERROR):
        no_descriptor_left()
        for peer in waiting:
            peer.connect(str(served.path))
        until(lambda: served.server.counters["no_descriptor"] > 0, "a session that cannot be taken in")
        assert job.ask("status")["result"] == {"method": "status"}, "the job's own session goes on"
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        until(lambda: served.server.sessions == 21, "every peer that waited")
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "raise LimitNOFILE=" in errors[0].getMessage()
    assert errors[0].exc_info is None
    for peer in waiting:
        peer.close()
