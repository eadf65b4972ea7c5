"""The real service on a virtual board, scraped as Prometheus would, at rest, while a job runs and after it."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families
from rig import FAST, Lab, Service, training, wait_for

Page = dict[tuple[str, str], float]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def page_of(port: int) -> Page:
    """(metric, value of its first label) → value."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in families
        for sample in family.samples
    }


def served(lab: Lab, port: int, **more: object) -> Service:
    board = lab.board("nano", "a", 31)
    config = {"profile": {**FAST, "max_frequencies": 4}, "metrics": {"listen": f"127.0.0.1:{port}"}, **more}
    service = lab.service(board, "a", config)
    wait_for(lambda: answers(port), 10, "metrics are served")
    return service


def answers(port: int) -> bool:
    try:
        return bool(page_of(port))
    except (urllib.error.URLError, ConnectionError):
        return False


def test_what_is_absent_stays_absent_and_energies_agree_with_the_board(lab: Lab) -> None:
    port = free_port()
    service = served(lab, port, policy="fixed", fixed={"gpu_frequency_hz": 460_800_000}, cap={"power_w": 9})
    idle = page_of(port)
    absent = ("input_power_watts", "gpu_utilization_ratio", "input_energy_joules_total", "gpu_frequency_hertz")
    assert not {("traingov_" + name, "") for name in absent} & idle.keys()
    assert idle["traingov_telemetry_running", ""] == idle["traingov_jobs", ""] == 0
    assert idle["traingov_cap_watts", ""] == 9
    with training(service, [32]):
        wait_for(lambda: page_of(port).get(("traingov_job_samples_total", "digits-mlp"), 0) > 500, 20, "samples come")
        running = page_of(port)
        jobs = service.ask("jobs")["running"]
    assert running["traingov_gpu_frequency_limit_hertz", "max"] == 460_800_000
    assert running["traingov_rail_power_watts", "POM_5V_IN"] == running["traingov_input_power_watts", ""] > 1
    assert 0 <= running["traingov_gpu_utilization_ratio", ""] <= 1
    assert running["traingov_job_batch_size", "digits-mlp"] == 32
    energy = running["traingov_job_energy_joules_total", "digits-mlp"]
    assert 0 < energy <= jobs[0]["input_energy_j"] < energy + 15  # asked a moment later
    assert running["traingov_knob_writes_total", "taken"] >= 1
    wait_for(lambda: page_of(port)["traingov_jobs", ""] == 0, 10, "the job's end is counted")
    after = page_of(port)
    assert after["traingov_jobs_ended_total", "end"] == 1
    assert after["traingov_job_energy_joules_total", "digits-mlp"] >= energy
    wait_for(lambda: page_of(port).get(("traingov_restores_total", "restored")) == 1, 10, "the restore is counted")
    assert ("traingov_input_power_watts", "") not in page_of(port)


def test_a_port_in_use_is_a_condition_and_the_service_governs_all_the_same(lab: Lab) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        board = lab.board("nano", "a", 32)
        service = lab.service(board, "a", {"policy": "observe", "metrics": {"listen": f"127.0.0.1:{port}"}})
        told = wait_for(lambda: service.ask("status")["conditions"].get("metrics-not-served"), 10, "it is a condition")
        assert f"127.0.0.1:{port}" in told
        assert "in use" in told
        with training(service, [32]):
            assert service.process.poll() is None
    wait_for(lambda: answers(port), 10, "the port is taken once it is free")
    assert "metrics-not-served" not in service.ask("status")["conditions"]
    assert page_of(port)["traingov_build_info", "0.1.0"] == 1
