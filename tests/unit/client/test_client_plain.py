"""The client with nothing but the standard library, as it runs on Python 3.6: python -m unittest works as well.

The daemon here is a few lines of its own, so that client and server do not agree by sharing a mistake.
"""

# Plain unittest on purpose, and no idiom younger than Python 3.6.
# ruff: noqa: B905, PT009, PT027, SIM105, SIM117

import json
import os
import shutil
import socket
import tempfile
import threading
import time
import unittest

import traingov_client
from traingov_client import link as link_module
from traingov_client.outbox import Outbox, merged
from traingov_client.window import REPORT_INTERVAL_S, Window


class FakeDaemon:
    """Accepts connections one after another. ``reply`` is the result of register; None: it says nothing."""

    def __init__(self, path, reply=None, silent=False, error=None):
        self.path = path
        self.reply = reply
        self.silent = silent
        self.error = error
        self.received = []
        self.connection = None
        self.connections = 0
        self.closing = False
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve)
        self.thread.daemon = True
        self.thread.start()

    def serve(self):
        while not self.closing:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connection = connection
            self.connections += 1
            try:
                self.talk(connection)
            except OSError:
                pass
            connection.close()

    def talk(self, connection):
        rest = b""
        while True:
            if self.silent:
                time.sleep(0.01)
                if self.closing:
                    return
                continue
            data = connection.recv(65536)
            if not data:
                return
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                self.answer(json.loads(line.decode("utf-8")))

    def answer(self, message):
        self.received.append(message)
        if message["method"] == "hello":
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": {"protocol": 1, "server": "fake", "board": "x"}})
        elif message["method"] == "register":
            if self.error is not None:
                self.say({"jsonrpc": "2.0", "id": message["id"], "error": self.error})
                return
            result = {"job": "j1", "batch_size": message["params"]["batch_size"], "phase": "train", "advice": None}
            result.update(self.reply or {})
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def say(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode("utf-8") + b"\n"
        self.connection.sendall(raw)

    def advise(self, number, batch_size, phase="train"):
        params = {"advice": number, "batch_size": batch_size, "phase": phase, "reason": "test"}
        self.say({"jsonrpc": "2.0", "method": "advise", "params": params})

    def of(self, method):
        return [message["params"] for message in list(self.received) if message["method"] == method]

    def close(self):
        self.closing = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        if self.connection is not None:
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join(10)
        if os.path.exists(self.path):
            os.unlink(self.path)


class Scene(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "s.sock")

    def daemon(self, **options):
        daemon = FakeDaemon(self.path, **options)
        self.addCleanup(daemon.close)
        return daemon

    def register(self, **options):
        fields = {"workload": "resnet18", "batch_sizes": [8, 16, 32], "socket": self.path}
        fields.update(options)
        job = traingov_client.register(**fields)
        self.addCleanup(job.end)
        return job

    def until(self, condition, act=None):
        deadline = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not come within 10 s")
            if act is not None:
                act()
            time.sleep(0.002)


class WithoutADaemon(Scene):
    def test_training_goes_on_and_the_absence_is_said_once(self):
        with self.assertLogs("traingov_client", "WARNING") as logs:
            with self.register(batch_size=16) as job:
                for _ in range(100):
                    self.assertFalse(job.safe_point())
                    job.step()
                link = job._link
                for moment in range(1000, 1010):
                    link.poll(moment * 1000.0)
        said = "traingov: no service at " + self.path + "; training goes on ungoverned"
        self.assertEqual([record.getMessage() for record in logs.records], [said])
        self.assertEqual(job.batch_size, 16)
        self.assertEqual(job.samples_done, 1600)

    def test_the_largest_batch_size_is_the_default(self):
        with self.assertLogs("traingov_client", "WARNING"):
            self.assertEqual(self.register().batch_size, 32)

    def test_the_wait_between_attempts_doubles_up_to_a_minute(self):
        with self.assertLogs("traingov_client", "WARNING"):
            link = link_module.Link(self.path, dict)
            now, waits = 1000.0, []
            for _ in range(10):
                link.poll(now)
                waits.append(link._next_try_s - now)
                link.poll(now + 0.99 * waits[-1])  # too early: nothing is tried
                self.assertEqual(link._next_try_s, now + waits[-1])
                now = link._next_try_s
        self.assertEqual(waits, [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60])

    def test_a_single_batch_size_is_told_to_be_given_as_a_list(self):
        for value, said in ((16, "not 16"), ("16", "not the text '16'")):
            with self.assertRaises(ValueError) as caught:
                self.register(batch_sizes=value)
            self.assertIn("batch_sizes must be a list", str(caught.exception))
            self.assertIn(said, str(caught.exception))

    def test_arguments_that_make_no_sense_are_told_at_once(self):
        wrong = [
            {"batch_sizes": []},
            {"batch_sizes": [8, 8]},
            {"batch_sizes": [0]},
            {"batch_sizes": ["8"]},
            {"batch_sizes": 16},
            {"batch_sizes": "16"},
            {"batch_sizes": list(range(1, 66))},
            {"batch_size": 7},
            {"workload": ""},
            {"workload": "a\nb"},
            {"features": {"depth": 3}},
            {"features": {"layers": 0}},
            {"features": {"seq_len_avg": float("nan")}},
            {"signature": {"optimizer": 3}},
            {"learning_rate_rule": "cube"},
            {"policy": "fast"},
            {"samples_total": 0},
            {"samples_done": -1},
            {"sync": 3},
        ]
        for change in wrong:
            with self.assertRaises(ValueError, msg=repr(change)):
                self.register(**change)

    def test_the_learning_rate_follows_the_batch_size(self):
        with self.assertLogs("traingov_client", "WARNING"):
            job = self.register(batch_size=8)
        self.assertAlmostEqual(job.scale_lr(1e-3), 1e-3 * (8 / 32.0) ** 0.5)
        self.assertAlmostEqual(job.scale_lr(1e-3, reference_batch=16), 1e-3 * 0.5**0.5)
        self.assertAlmostEqual(job.scale_lr(1e-3, rule="linear"), 1e-3 / 4)
        self.assertAlmostEqual(job.scale_lr(1e-3, rule="none"), 1e-3)
        self.assertRaises(ValueError, job.scale_lr, 1e-3, None, "cube")

    def test_a_batch_size_that_does_not_fit_falls_back_until_none_is_left(self):
        with self.assertLogs("traingov_client", "WARNING"):
            job = self.register()
        self.assertTrue(job.out_of_memory())
        self.assertEqual((job.batch_size, job.batch_sizes), (16, [8, 16]))
        self.assertTrue(job.out_of_memory())
        self.assertEqual((job.batch_size, job.batch_sizes), (8, [8]))
        self.assertFalse(job.out_of_memory())
        self.assertEqual((job.batch_size, job.batch_sizes), (8, []))


class WithADaemon(Scene):
    def test_what_is_registered_arrives(self):
        daemon = self.daemon()
        job = self.register(
            batch_size=16,
            features={"layers": 6, "hidden_size": None},
            samples_total=1000,
            policy="joint",
            samples_done=64,
        )
        self.assertTrue(job.connected)
        self.assertEqual([m["method"] for m in daemon.received[:2]], ["hello", "register"])
        self.assertEqual(daemon.of("hello")[0]["protocol"], 1)
        expected = {
            "workload": "resnet18",
            "batch_sizes": [8, 16, 32],
            "batch_size": 16,
            "features": {"layers": 6},
            "signature": {},
            "learning_rate_rule": "sqrt",
            "samples_total": 1000,
            "policy": "joint",
            "samples_done": 64,
            "resume": False,
        }
        self.assertEqual(daemon.of("register")[0], expected)

    def test_no_step_is_lost_and_none_is_counted_twice(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        for _ in range(50):
            job.step()
            time.sleep(0.005)
        job.end()
        self.until(lambda: daemon.of("end"))
        reports = daemon.of("steps")
        self.assertGreater(len(reports), 1)
        self.assertEqual(sum(report["steps"] for report in reports), 49)  # the first is not measured
        self.assertEqual(sum(report["samples"] for report in reports), 49 * 16)
        self.assertEqual(job.samples_done, 50 * 16)
        ends = [report["end_s"] for report in reports]
        begins = [report["end_s"] - report["elapsed_s"] for report in reports]
        for end, begin in zip(ends, begins[1:]):
            self.assertAlmostEqual(end, begin, places=6)
        self.assertLessEqual(ends[-1], time.monotonic())
        for report in reports[:-1]:
            self.assertGreaterEqual(report["elapsed_s"], REPORT_INTERVAL_S)

    def test_other_sample_counts_and_sequence_lengths_are_reported(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        job.step()
        job.step(n=10, seq_len_avg=30.0)
        job.step(n=30, seq_len_avg=50.0)
        job.end()
        self.until(lambda: daemon.of("end"))
        (report,) = daemon.of("steps")
        self.assertEqual((report["steps"], report["samples"]), (2, 40))
        self.assertAlmostEqual(report["seq_len_avg"], 45.0)

    def test_the_start_is_a_safe_point(self):
        daemon = self.daemon(reply={"batch_size": 8, "phase": "profile", "advice": 4})
        job = self.register(batch_size=16)
        self.assertEqual((job.batch_size, job.phase), (8, "profile"))
        self.assertFalse(job.safe_point())
        self.until(lambda: daemon.of("batch_applied"))
        self.assertEqual(daemon.of("batch_applied"), [{"batch_size": 8, "advice": 4}])

    def test_a_start_that_differs_is_confirmed_also_without_a_number(self):
        daemon = self.daemon(reply={"batch_size": 8})
        self.assertEqual(self.register(batch_size=16).batch_size, 8)
        self.until(lambda: daemon.of("batch_applied"))
        self.assertEqual(daemon.of("batch_applied"), [{"batch_size": 8, "advice": None}])

    def test_advice_is_taken_at_a_safe_point_and_no_window_mixes_two_sizes(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        for _ in range(3):
            job.step()
        daemon.advise(1, 8)
        self.until(lambda: job._pending is not None, job.step)
        self.assertEqual(job.batch_size, 16, "not before the safe point")
        self.assertTrue(job.safe_point())
        self.assertEqual(job.batch_size, 8)
        self.assertFalse(job.safe_point())
        for _ in range(5):
            job.step()
        job.end()
        self.until(lambda: daemon.of("end"))
        methods = [m["method"] for m in daemon.received if m["method"] in ("steps", "batch_applied")]
        split = methods.index("batch_applied")
        self.assertEqual(set(methods[:split]), {"steps"})
        sizes = [report["batch_size"] for report in daemon.of("steps")]
        self.assertEqual(sizes, [16] * split + [8] * (len(sizes) - split))
        self.assertEqual(daemon.of("batch_applied"), [{"batch_size": 8, "advice": 1}])
        self.assertEqual([r["steps"] for r in daemon.of("steps") if r["batch_size"] == 8], [4])

    def test_advice_for_the_size_in_use_and_hold_change_nothing_and_are_answered(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        daemon.advise(1, 16, "profile")
        self.until(lambda: job.phase == "profile", lambda: self.assertFalse(job.safe_point()))
        daemon.advise(2, 8, "hold")
        self.until(lambda: job.phase == "hold", lambda: self.assertFalse(job.safe_point()))
        self.assertEqual(job.batch_size, 16)
        self.until(lambda: len(daemon.of("batch_applied")) == 2)
        self.assertEqual([a["advice"] for a in daemon.of("batch_applied")], [1, 2])

    def test_the_device_is_synchronised_at_window_edges_while_profiling_only(self):
        calls = []
        daemon = self.daemon()
        job = self.register(batch_size=16, sync=lambda: calls.append(1))
        for _ in range(1000):
            job.step()
        self.assertEqual(calls, [])
        daemon.advise(1, 16, "profile")
        self.until(lambda: job.phase == "profile", job.safe_point)
        before = len(calls)
        steps = 0
        reports = len(daemon.of("steps"))
        while len(daemon.of("steps")) < reports + 3:
            job.step()
            steps += 1
        self.assertLess(len(calls) - before, steps / 10)
        job.end()
        self.until(lambda: daemon.of("end"))
        # The first report may be that of the window before; what was measured while profiling is exact.
        self.assertTrue(all(report["synced"] for report in daemon.of("steps")[-3:]))
        self.assertFalse(daemon.of("steps")[0]["synced"])

    def test_a_sync_that_fails_does_not_fail_the_training(self):
        def broken():
            raise RuntimeError("device lost")

        daemon = self.daemon(reply={"phase": "profile", "advice": 1})
        job = self.register(batch_size=16, sync=broken)
        with self.assertLogs("traingov_client", "WARNING") as logs:
            for _ in range(3):
                job.step()
            job.end()
        self.assertEqual(len(logs.output), 1)
        self.until(lambda: daemon.of("end"))
        self.assertFalse(any(report["synced"] for report in daemon.of("steps")))

    def test_a_pause_is_not_training_time(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        begin = time.monotonic()
        for _ in range(3):
            job.step()
        with job.pause():
            with job.pause():
                time.sleep(0.3)
            job.step()
        job.step()
        job.end()
        wall = time.monotonic() - begin
        self.until(lambda: daemon.of("end"))
        self.assertEqual(sum(report["steps"] for report in daemon.of("steps")), 3)
        self.assertLess(sum(report["elapsed_s"] for report in daemon.of("steps")), wall - 0.3)
        self.assertEqual(job.samples_done, 5 * 16)

    def test_a_pause_is_told_with_its_reason_after_the_steps_before_it_and_its_end_too(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        for _ in range(3):
            job.step()
        with job.pause("evaluation\nof fold 2"):
            with job.pause("checkpoint"):
                self.until(lambda: daemon.of("pause"))
            self.assertEqual(daemon.of("resume"), [])
        self.until(lambda: daemon.of("resume"))
        job.end()
        self.until(lambda: daemon.of("end"))
        self.assertEqual(daemon.of("pause"), [{"reason": "evaluation of fold 2"}])
        methods = [m["method"] for m in daemon.received if m["method"] in ("steps", "pause", "resume")]
        self.assertEqual(methods, ["steps", "pause", "resume"])

    def test_pauses_that_follow_each_other_fast_are_told_once_a_second_at_most(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        for _ in range(500):
            with job.pause("loading"):
                pass
            job.step()
        job.end()
        self.until(lambda: daemon.of("end"))
        self.assertEqual(len(daemon.of("pause")), len(daemon.of("resume")))
        self.assertLessEqual(len(daemon.of("pause")), 2)

    def test_what_waits_keeps_the_newest_of_pause_and_resume(self):
        outbox = Outbox(bound=2)
        outbox.paused("a")
        outbox.paused(None)
        outbox.applied(8, None)
        self.assertEqual(outbox.take(), [("batch_applied", {"batch_size": 8, "advice": None}), ("resume", {})])

    def test_a_pause_before_the_first_step_does_not_make_it_count(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        with job.pause():
            pass
        for _ in range(3):
            job.step()
        job.end()
        self.until(lambda: daemon.of("end"))
        self.assertEqual(sum(report["steps"] for report in daemon.of("steps")), 2)

    def test_out_of_memory_goes_back_to_the_size_before_and_is_told(self):
        daemon = self.daemon()
        job = self.register(batch_size=8)
        daemon.advise(1, 32)
        self.until(job.safe_point)
        self.assertTrue(job.out_of_memory())
        self.assertEqual(job.batch_size, 8)
        self.until(lambda: len(daemon.of("batch_applied")) == 2)
        self.assertEqual(daemon.of("batch_failed"), [{"batch_size": 32, "reason": "out_of_memory"}])
        self.assertEqual(daemon.of("batch_applied")[-1], {"batch_size": 8, "advice": None})
        with self.assertLogs("traingov_client", "WARNING"):
            daemon.advise(2, 32)
            self.until(lambda: "absurd" in job._link._said, lambda: self.assertFalse(job.safe_point()))
        self.assertEqual(job.batch_size, 8)

    def test_nonsense_from_the_daemon_is_ignored_with_one_warning_of_each_kind(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        with self.assertLogs("traingov_client", "WARNING") as logs:
            daemon.say(b"not json\n[]\n" + b"[" * 3000 + b'\n"x"\nnull\n\xff\n')
            for wrong in (7, "8", True, None, 16.0, [8], 2**70):
                daemon.advise(1, wrong)
            daemon.advise(1, 8, "dance")
            daemon.advise("one", 8)
            daemon.advise(-1, 8)
            daemon.say(b'{"jsonrpc":"2.0","method":"advise","params":[1,2]}\n{"method":{}}\n')
            daemon.advise(9, 32)
            self.until(job.safe_point)
        self.assertEqual(job.batch_size, 32)
        self.assertEqual(len(logs.output), 2, logs.output)

    def test_an_endless_line_from_the_daemon_is_cut_off(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        with self.assertLogs("traingov_client", "WARNING"):
            sender = threading.Thread(target=self.swallow, args=(daemon,))
            sender.start()
            self.until(lambda: not job.connected, job.safe_point)
            sender.join(10)
        job.step()

    def swallow(self, daemon):
        try:
            daemon.say(b"x" * 1000000)
        except OSError:
            pass

    def test_a_refusal_is_said_with_the_daemons_words_and_a_final_one_is_not_tried_again(self):
        daemon = self.daemon(error={"code": -32003, "message": "user 1000 is not in group traingov"})
        with self.assertLogs("traingov_client", "WARNING") as logs:
            job = self.register(batch_size=16)
        self.assertIn("user 1000 is not in group traingov", logs.output[0])
        job._link.poll(time.monotonic() + 1000)
        self.assertEqual((job._link.state, daemon.connections), ("closed", 1))
        for _ in range(10):
            job.step()
            job.safe_point()


class WhenTheDaemonFails(Scene):
    def test_a_silent_daemon_holds_the_start_up_for_the_timeout_only(self):
        self.daemon(silent=True)
        begin = time.monotonic()
        with self.assertLogs("traingov_client", "WARNING"):
            job = self.register(batch_size=16, timeout_s=0.1)
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)
        self.assertEqual(job.batch_size, 16)
        self.assertFalse(job.connected)

    def test_a_daemon_that_does_not_read_costs_no_count_and_little_memory(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        self.assertTrue(job.connected)
        daemon.silent = True
        job.step()  # the reading thread may still take this
        self.until(lambda: not job._link.idle, lambda: self.stuff(job))
        for _ in range(5000):
            job._window._due_s = 0.0
            job.step()
        self.assertLess(len(job._outbox), 5)
        self.assertLess(len(job._link._out), 65536)
        daemon.silent = False
        self.until(lambda: job._link.idle and not len(job._outbox), lambda: job._poll(time.monotonic()))
        job.end()
        self.until(lambda: daemon.of("end"))
        self.assertEqual(16 + sum(report["samples"] for report in daemon.of("steps")), job.samples_done)

    def stuff(self, job):
        for _ in range(200):
            job._window._due_s = 0.0
            job.step()

    def test_a_restarted_daemon_gets_the_progress_and_nothing_twice(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        for _ in range(10):
            job.step()
        daemon.close()
        with self.assertLogs("traingov_client", "WARNING"):
            self.until(lambda: not job.connected, lambda: (time.sleep(0.02), job.step()))
        again = self.daemon()
        self.until(lambda: job.connected, lambda: (time.sleep(0.02), job.step()))
        self.assertTrue(again.of("register")[0]["resume"])
        start = again.of("register")[0]["samples_done"]
        for _ in range(5):
            job.step()
        job.end()
        self.until(lambda: again.of("end"))
        self.assertEqual(start + sum(report["samples"] for report in again.of("steps")), job.samples_done)

    def test_steps_of_an_open_window_are_not_counted_twice_by_a_reconnection(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        daemon.close()
        with self.assertLogs("traingov_client", "WARNING"):
            self.until(lambda: not job.connected, job.safe_point)
        job.step()
        for _ in range(5):
            job._window._due_s = float("inf")  # the window stays open
            job.step()
        again = self.daemon()
        self.until(lambda: job.connected, job.safe_point)
        self.assertEqual(again.of("register")[0]["samples_done"], 16)
        job.end()
        self.until(lambda: again.of("end"))
        self.assertEqual(16 + sum(report["samples"] for report in again.of("steps")), job.samples_done)

    def test_more_than_the_kernel_takes_at_once_arrives_whole_and_in_order(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        messages = [("batch_applied", {"batch_size": 8, "advice": n, "filler": "x" * 1000}) for n in range(3000)]
        job._link.send(messages, time.monotonic())
        self.assertFalse(job._link.idle, "3 MB do not fit into the kernel's buffer")
        self.until(lambda: job._link.idle, job.safe_point)
        self.until(lambda: len(daemon.of("batch_applied")) == 3000)
        self.assertEqual([params["advice"] for params in daemon.of("batch_applied")], list(range(3000)))

    def test_phase_falls_back_to_train_when_the_daemon_is_gone(self):
        daemon = self.daemon(reply={"phase": "profile", "advice": 1})
        job = self.register(batch_size=16)
        self.assertEqual(job.phase, "profile")
        daemon.close()
        with self.assertLogs("traingov_client", "WARNING"):
            self.until(lambda: not job.connected, job.safe_point)
        self.assertEqual(job.phase, "train")


class AfterAFork(Scene):
    def fork(self, act):
        """Run ``act`` in a child; whether it returned True there."""
        child = os.fork()
        if child == 0:
            ok = False
            try:
                ok = act() is True
            finally:
                os._exit(0 if ok else 1)
        return os.waitpid(child, 0)[1] == 0

    def test_a_child_reports_nothing_and_the_parent_goes_on(self):
        daemon = self.daemon()
        job = self.register(batch_size=16)
        job.step()

        def child():
            for _ in range(20):
                job._window._due_s = 0.0
                job.step()
            quiet = not job.safe_point() and not job.out_of_memory()
            with job.pause():
                pass
            job.end()
            return quiet and job._link._socket is None

        self.assertTrue(self.fork(child))
        for _ in range(4):
            job.step()
        job.end()
        self.until(lambda: daemon.of("end"))
        self.assertEqual(daemon.of("batch_failed"), [])
        self.assertEqual(sum(report["steps"] for report in daemon.of("steps")), 4)

    @unittest.skipUnless(hasattr(os, "register_at_fork"), "Python 3.6 has no os.register_at_fork")
    def test_a_child_that_never_calls_closes_its_copy_too(self):
        self.daemon()
        job = self.register(batch_size=16)
        self.assertTrue(self.fork(lambda: job._link._socket is None))
        self.assertTrue(job.connected)

    def test_the_socket_does_not_survive_an_exec(self):
        self.daemon()
        job = self.register(batch_size=16)
        self.assertFalse(os.get_inheritable(job._link._socket.fileno()))


class Windows(unittest.TestCase):
    def test_a_window_is_exact_only_when_both_edges_were_synchronised(self):
        for edges in ([True, True], [True, False], [False, True], [False, False]):
            answers = list(edges)
            window = Window(lambda answers=answers: answers.pop(0), 0)
            window.open()
            window.add(8, None)
            self.assertEqual(window.cut(8)["synced"], all(edges), edges)

    def test_nothing_done_is_nothing_to_report(self):
        window = Window(lambda: False, 5)
        self.assertIsNone(window.cut(8), "it is not open")
        window.open()
        self.assertIsNone(window.cut(8))
        window.add(0, None)
        self.assertIsNone(window.cut(8), "a step without samples")
        window.add(float("nan"), None)
        self.assertIsNone(window.cut(8))
        self.assertEqual(window.samples_done, 5)


class Merging(unittest.TestCase):
    def window(self, size, steps=1, synced=True, **more):
        fields = {
            "batch_size": size,
            "steps": steps,
            "samples": steps * size,
            "elapsed_s": 0.1 * steps,
            "end_s": 5.0,
            "synced": synced,
            "seq_len_avg": None,
        }
        fields.update(more)
        return fields

    def test_counts_add_up_and_the_sequence_length_is_weighted(self):
        out = merged(self.window(8, 1, seq_len_avg=10.0), self.window(8, 3, False, seq_len_avg=30.0, end_s=6.0))
        self.assertEqual((out["steps"], out["samples"], out["end_s"], out["synced"]), (4, 32, 6.0, False))
        self.assertAlmostEqual(out["elapsed_s"], 0.4)
        self.assertAlmostEqual(out["seq_len_avg"], 25.0)

    def test_order_is_kept_and_exact_windows_are_not_mixed_with_rough_ones(self):
        box = Outbox()
        box.steps(self.window(8))
        box.steps(self.window(8))
        box.steps(self.window(8, synced=False))
        box.applied(16, 1)
        box.steps(self.window(16))
        items = box.take()
        self.assertEqual([method for method, _ in items], ["steps", "steps", "batch_applied", "steps"])
        self.assertEqual(items[0][1]["steps"], 2)
        self.assertEqual(len(box), 0)

    def test_it_stays_small_and_loses_no_count_whatever_happens(self):
        box = Outbox(bound=10)
        total = 0
        for turn in range(3000):
            size = 1 + turn % 64
            box.applied(size, turn)
            box.steps(self.window(size, synced=bool(turn % 3)))
            total += 1
            if turn % 50 == 0:
                box.failed(size, "out_of_memory")
            self.assertLess(len(box), 300)
        items = box.take()
        self.assertEqual(sum(params["steps"] for method, params in items if method == "steps"), total)
        self.assertEqual([p["advice"] for m, p in items if m == "batch_applied"][-1], 2999)


if __name__ == "__main__":
    unittest.main()
