"""The real service on a virtual AGX Orin: over-current in sysfs is avoided, recorded, and a reload is taken."""

from __future__ import annotations

import json
import os
import signal
import time

from rig import Lab, board_set, traingov, training, wait_for

TOP = 1_300_500_000


def test_the_clock_settles_where_the_over_current_counters_stay_flat(lab: Lab) -> None:
    board = lab.board("agx-orin", "a", 41)
    board_set(board, current_limits={"VDD_GPU_SOC": {"max_a": 0.8, "crit_a": 1.04}})
    record = lab.directory / "oc.jsonl"
    config = {"policy": "fixed", "fixed": {"gpu_frequency_hz": TOP}}
    service = lab.service(board, "a", config, record)
    with training(service, [16], workload="text-classifier"):
        wait_for(lambda: "over-current-limit" in service.ask("status")["conditions"], 15, "the counters are noticed")

        def flat() -> bool:
            before = board.truth()["oc_events"]
            time.sleep(2.0)
            return bool(board.truth()["oc_events"] == before)

        wait_for(flat, 20, "the counters stay flat")
        held = board.bounds_hz()[1]
        assert held < TOP
        text = service.ask("status")["conditions"]["over-current-limit"]
        assert text == f"the clock is held at {held / 1e6:.0f} MHz at most: above it the over-current counters rose"
        assert any("counters rose (oc" in d["text"] for d in service.ask("explain"))
        file = lab.directory / "a" / "traingov.yaml"
        file.write_text(json.dumps({**json.loads(file.read_text()), "guard": {"avoid_over_current": False}}))
        os.kill(service.process.pid, signal.SIGHUP)
        wait_for(lambda: board.bounds_hz()[1] == TOP, 10, "the reloaded setting holds")
    service.process.send_signal(signal.SIGTERM)
    service.process.wait(10)
    assert '"OverCurrentCounted"' in record.read_text()
    assert '"Thermals"' in record.read_text()
    replayed = traingov("replay", str(record), "--json")
    answer = json.loads(replayed.stdout)
    assert (answer["difference"], answer["violations"]) == (None, [])
