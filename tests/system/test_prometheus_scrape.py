"""A real Prometheus server scrapes a governed run; promtool judges page and rules; every dashboard query has data."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from rig import FAST, Lab, Service, traingov, training, wait_for

from traingov.metrics.names import METRICS

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
RULES = ROOT / "etc/prometheus/traingov.rules.yml"
DASHBOARD = ROOT / "etc/grafana/traingov.json"
PASSWORD = "open sesame"


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: apt-get install --no-install-recommends prometheus")
    return found


def promtool(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [need("promtool"), *arguments], input=given, capture_output=True, text=True, check=False, timeout=120
    )


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def test_the_rules_are_right_and_each_alert_fires_in_its_case_only() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    cases = ROOT / "tests/system/prometheus/rules.test.yml"
    done = promtool("test", "rules", str(cases))
    assert done.returncode == 0, done.stdout + done.stderr
    named = {
        rule["alert"]
        for group in yaml.safe_load(RULES.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    tried = {
        case["alertname"]
        for test in yaml.safe_load(cases.read_text())["tests"]
        for case in test.get("alert_rule_test", [])
        if case["exp_alerts"]
    }
    assert named == tried


@dataclass
class Server:
    port: int
    process: subprocess.Popen[bytes]

    def ask(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        data = self.ask("query", query=expression)
        return [] if data["resultType"] == "scalar" else list(data["result"])


@dataclass
class Run:
    """A governed run that was scraped: the server goes on running, the service as well."""

    server: Server
    service: Service
    page: str
    target: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    prometheus = need("prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    metrics_port, server_port = free_ports(2)
    hashed = traingov("metrics", "password", "--password", PASSWORD).stdout.strip()
    with Lab() as lab:
        listen = {"listen": f"127.0.0.1:{metrics_port}", "users": {"prometheus": hashed}}
        board = lab.board("nano", "a", 41)
        config = {
            "cap": {"power_w": 6, "burst_w": 9},
            "profile": {**FAST, "max_frequencies": 3, "max_points": 4},
            "metrics": listen,
        }
        service = lab.service(board, "a", config)
        (folder / "prometheus.yml").write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(RULES)],
                    "scrape_configs": [
                        {
                            "job_name": "traingov",
                            "static_configs": [{"targets": [f"127.0.0.1:{metrics_port}"]}],
                            "basic_auth": {"username": "prometheus", "password": PASSWORD},
                        }
                    ],
                }
            )
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [prometheus, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
                 f"--web.listen-address=127.0.0.1:{server_port}", "--storage.tsdb.retention.time=1h"],
                stdout=log, stderr=log,
            )  # fmt: skip
        server = Server(server_port, process)
        try:
            wait_for(lambda: up(server), 30, "Prometheus reads the metrics")
            with training(service, [16, 128]) as trainer:
                wait_for(lambda: service.ask("status")["state"] == "joint", 60, "the job was profiled")
                cap_command(service, "set", "1.5", "--burst", "9")  # no point of this board keeps that
                wait_for(lambda: service.ask("status")["conditions"], 20, "a condition holds")
                time.sleep(6)
                assert trainer.error is None
                page = fetch(metrics_port)
                time.sleep(1.5)
                yield Run(server, service, page, f"127.0.0.1:{metrics_port}")
        finally:
            process.terminate()
            process.wait(20)


def cap_command(service: Service, *words: str) -> None:
    done = traingov("cap", *words, "--socket", str(service.socket))
    assert done.returncode == 0, done.stderr


def fetch(port: int) -> str:
    opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(Passwords()))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read(), "utf-8")


class Passwords(urllib.request.HTTPPasswordMgrWithDefaultRealm):
    def find_user_password(self, realm: str, authuri: str) -> tuple[str | None, str | None]:
        return "prometheus", PASSWORD


def up(server: Server) -> bool:
    try:
        return [row["value"][1] for row in server.query('up{job="traingov"}')] == ["1"]
    except OSError:
        return False


def test_promtool_finds_nothing_to_complain_of_on_the_page(run: Run) -> None:
    done = promtool("check", "metrics", given=run.page)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_page_of_a_governed_run_has_every_metric_that_is_documented(run: Run) -> None:
    on_page = set(re.findall(r"^# TYPE (\S+) ", run.page, re.MULTILINE))
    later = {"traingov_jobs_ended_total", "traingov_restores_total"}
    only_where_it_happens = {"traingov_cooling_state", "traingov_over_current_events_total"}
    assert set(METRICS) - on_page <= later | only_where_it_happens
    assert on_page <= set(METRICS)
    assert list(text_string_to_metric_families(run.page))


def test_prometheus_stored_what_the_service_says(run: Run) -> None:
    (energy,) = run.server.query("traingov_job_energy_joules_total")
    assert energy["metric"]["exported_job"] == "digits-mlp"
    (job,) = run.service.ask("jobs")["running"]
    assert 0 < float(energy["value"][1]) <= job["input_energy_j"]
    assert run.server.query('traingov_condition{condition="cap-infeasible"} == 1')
    (power,) = run.server.query("rate(traingov_input_energy_joules_total[10s])")
    (mean,) = run.server.query("avg_over_time(traingov_input_power_watts[10s])")
    assert float(power["value"][1]) == pytest.approx(float(mean["value"][1]), rel=0.3)


def test_every_query_of_the_dashboard_has_data(run: Run) -> None:
    empty = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "8s").replace("$instance", ".*")
            values = [row["value"][1] for row in run.server.query(expression.replace("[1m]", "[8s]"))]
            if "over_current" not in expression and not [value for value in values if value != "NaN"]:
                empty.append((panel["title"], expression))
    assert not empty
    names = re.findall(r"traingov_\w+", DASHBOARD.read_text())
    assert {name.removesuffix("_bucket") for name in names} <= METRICS.keys()


def test_the_rules_run_on_that_server_without_an_error(run: Run) -> None:
    def rules() -> list[dict[str, Any]]:
        return [rule for group in run.server.ask("rules")["groups"] for rule in group["rules"]]

    wait_for(lambda: all(rule["health"] != "unknown" for rule in rules()), 20, "every rule was evaluated")
    assert {rule["health"] for rule in rules()} == {"ok"}, [rule for rule in rules() if rule["health"] != "ok"]
    wait_for(lambda: run.server.query("instance:traingov_input_power_watts:rate1m"), 70, "a recording rule has data")
    active = {alert["labels"]["alertname"] for alert in run.server.ask("alerts")["alerts"]}
    assert "TraingovCapInfeasible" in active
    assert "TraingovDown" not in active
