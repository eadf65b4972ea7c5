"""The client against the real server."""

import multiprocessing
import os
import subprocess
import sys
import time

import pytest

import traingov_client
from traingov.sessions.handler import RegisterReply


@pytest.fixture
def train(until):
    """Registers, and ends with the test."""
    jobs = []

    def start(served, **options):
        fields = {"workload": "resnet18", "batch_sizes": [8, 16, 32], "batch_size": 16, "socket": str(served.path)}
        jobs.append(traingov_client.register(**{**fields, **options}))
        return jobs[-1]

    yield start
    for job in jobs:
        job.end()


def test_everything_the_client_sends_is_taken(serve, train, until):
    served = serve()
    job = train(
        served,
        features={"model_type": "transformer", "layers": 6, "hidden_size": 256, "seq_len_avg": 41.5},
        signature={"architecture": "a", "input_shape": "3x32x32", "precision": "fp32", "optimizer": "adam"},
        policy="energy",
        objective="energy",
        samples_total=10_000,
        samples_done=160,
        resume=True,
    )
    assert job.connected
    for _ in range(3):
        job.step(seq_len_avg=40.0)
    session = served.handler.sessions["j0"]
    served.call(lambda: session.advise(1, 32, "profile", "measure"))
    until(job.safe_point)
    job.step()
    job.step()
    assert job.out_of_memory()
    assert job.batch_size == 16
    job.step()
    job.step()
    job.end()
    until(lambda: served.handler.of("ended"))
    request = served.handler.requests["j0"]
    assert (request.samples_done, request.resume, request.features.layers) == (160, True, 6)
    assert request.signature.input_shape == "3x32x32"
    assert served.server.counters["rejected"] == 0
    assert served.handler.of("batch_applied") == [
        ("batch_applied", "j0", 32, 1),
        ("batch_applied", "j0", 16, None),
    ]
    assert served.handler.of("batch_failed") == [("batch_failed", "j0", 32, "out_of_memory")]
    assert served.handler.of("ended") == [("ended", "j0", "end")]
    reports = [entry[2] for entry in served.handler.of("steps")]
    assert {report.batch_size for report in reports} == {16}, "the spoiled window of batch 32 is not reported"
    assert reports[0].seq_len_avg == 40.0


def test_two_steps_at_a_new_size_are_reported_apart(serve, train, until):
    served = serve()
    job = train(served)
    session = served.handler.sessions["j0"]
    for size in (8, 32, 16):
        served.call(lambda size=size: session.advise(size, size, "profile", "measure"))
        until(job.safe_point)
        assert job.batch_size == size
        for _ in range(4):
            job.step()
    job.end()
    until(lambda: served.handler.of("ended"))
    counted = [(entry[2].batch_size, entry[2].steps, entry[2].samples) for entry in served.handler.of("steps")]
    assert counted == [(8, 3, 24), (32, 3, 96), (16, 3, 48)]


def test_a_restarted_daemon_gets_the_job_back_with_its_progress(serve, train, until):
    served = serve()
    job = train(served)
    for _ in range(10):
        job.step()
    served.stop()
    until(lambda: job.safe_point() or not job.connected)
    again = serve(served.path)

    def go_on():
        job.step()
        return job.connected

    until(go_on)
    request = again.handler.requests["j0"]
    assert request.resume
    assert request.samples_done >= 160
    job.end()
    until(lambda: again.handler.of("ended"))
    reported = sum(entry[2].samples for entry in again.handler.of("steps"))
    assert request.samples_done + reported == job.samples_done


def test_a_full_server_does_not_stop_a_training_and_is_tried_again(serve, train, until, limits):
    served = serve(limits=limits(max_sessions=1, reserved_for_admins=0))
    other = served.peer().hello()
    job = train(served)
    job.step()
    assert not job.connected
    other.close()

    def go_on():
        job.step()
        return job.connected

    until(go_on)


def test_a_socket_that_may_not_be_opened_does_not_stop_a_training(serve, train, caplog):
    served = serve()
    served.path.chmod(0)
    if os.access(served.path, os.W_OK):
        served.path.unlink()
    job = train(served)
    job.step()
    assert not job.connected
    assert "training goes on ungoverned" in caplog.text


def _work(job, queue):
    for _ in range(200):
        job.step()
        time.sleep(0.001)
    queue.put(job.safe_point())


def test_data_loader_workers_do_not_report(serve, train, until):
    served = serve()
    job = train(served)
    job.step()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_work, args=(job, queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert [queue.get(timeout=20) for _ in workers] == [False] * 3
    for worker in workers:
        worker.join(20)
    assert served.server.sessions == 1
    for _ in range(3):
        job.step()
    job.end()
    until(lambda: served.handler.of("ended"))
    assert sum(entry[2].steps for entry in served.handler.of("steps")) == 3
    assert len(served.handler.of("ended")) == 1


_DIES = """
import os, sys, traingov_client
job = traingov_client.register(workload="x", batch_sizes=[8], socket=sys.argv[1])
assert job.connected
for _ in range(5): job.step()
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


def test_a_training_that_is_killed_ends_its_job(serve, until):
    served = serve()
    process = subprocess.Popen([sys.executable, "-c", _DIES, str(served.path)], stdin=subprocess.PIPE)
    until(lambda: served.handler.of("register"))
    process.communicate(b"\n", timeout=20)
    until(lambda: served.handler.of("ended"))
    assert served.handler.of("ended")[0][2] in ("exited", "disconnected")


def test_the_reply_to_register_is_followed_at_once(serve, train, until):
    served = serve()
    served.handler.reply = lambda request: RegisterReply("resnet18-1", 32, "profile", 1)
    synced = []
    job = train(served, sync=lambda: synced.append(1))
    assert (job.batch_size, job.phase) == (32, "profile")
    until(lambda: served.handler.of("batch_applied"))
    assert served.handler.of("batch_applied") == [("batch_applied", "resnet18-1", 32, 1)]
    job.step()
    job.step()
    job.end()
    until(lambda: served.handler.of("steps"))
    assert served.handler.of("steps")[0][2].synced
    assert len(synced) == 3  # where the window begins, after its one step, and at the end
