"""The report's page, made from a governed run on the virtual board, in a real browser: Chromium without a window."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from rig import FAST, SCRIPT, Trainer, wait_for

from traingov_sim.demo.lab import Lab

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
LONGEST_S = 40

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]


def browse(page: Path, folder: Path, *options: str) -> tuple[str, list[str]]:
    """What chromium prints with ``options``, and what its console said about ``page``."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--no-first-run", "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", *options, page.as_uri()],
        capture_output=True, text=True, timeout=LONGEST_S, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a run that measured six points under a cap and then trained at the chosen one."""
    folder = tmp_path_factory.mktemp("report")
    with Lab() as lab:
        board = lab.board("nano", "a", seed=3)
        config = {"policy": "joint", "cap": {"power_w": 4.5}, "profile": {**FAST, "max_points": 4}}
        service = lab.service(board, "a", config)
        trainer = Trainer(service, [16, 32], workload="digits-mlp", samples_total=60_000)
        trainer.start()
        decided = lambda: any(d["kind"] == "joint" for d in service.ask("explain"))  # noqa: E731
        wait_for(decided, 40, "a choice from the table")
        time.sleep(2.5)
        trainer.stop()
        lab.stop(service)
        out = folder / "report.html"
        done = subprocess.run(
            [SCRIPT, "report", "digits-mlp", "--state-dir", str(service.state_dir), "--html", str(out)],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return out


def test_the_page_of_a_governed_run_opens_without_a_complaint_and_says_what_happened(
    page: Path, tmp_path: Path
) -> None:
    document, console = browse(page, tmp_path, "--dump-dom")
    assert console == []
    assert 'data-ready="yes"' in document  # its script ran to its end, as the content security policy allows
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", document, flags=re.DOTALL)
    for part in ("digits-mlp on NVIDIA Jetson Nano", "Simulated:", "the cap of 4.5 W", "Chosen: batch",
                 "input power, W", "framed: the chosen point", "profiling: at most 4 points",
                 "Where time and energy went"):  # fmt: skip
        assert part in text, part
    assert "No timeline was kept" not in text


@pytest.mark.parametrize(
    ("name", "options"),
    [("light", ("--window-size=1100,1400",)),
     ("dark", ("--window-size=1100,1400", "--blink-settings=preferredColorScheme=0")),
     ("narrow", ("--window-size=500,1400",))],
)  # fmt: skip
def test_it_is_drawn_in_light_in_dark_and_in_a_narrow_window(
    page: Path, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    picture = tmp_path / f"{name}.png"
    _, console = browse(page, tmp_path, f"--screenshot={picture}", *options)
    assert console == []
    assert picture.stat().st_size > 20_000  # text and charts, not an empty window


def test_the_slider_reads_a_moment_of_the_run(page: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.html"  # the page, with a script of ours, which its policy would not allow
    document = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    move = "slide.value = '900'; slide.dispatchEvent(new Event('input'));"
    moved.write_text(document.replace("</body>", f"<script>{move}</script></body>"), encoding="utf-8")
    shown, console = browse(moved, tmp_path, "--dump-dom")
    assert console == []
    read = re.search(r"<output[^>]*>([^<]*)</output>", shown)
    assert read is not None
    number = r"[0-9.]+"
    assert re.fullmatch(
        rf"{number} to {number} s: {number} W \({number} W to {number} W\); window mean at most {number} W; "
        rf"cap 4.5 W; ({number} to )?{number} MHz; batch (16|32)",
        read[1],
    )
    assert 'visibility="visible"' in shown  # the line in the chart


def test_a_complaint_of_the_browser_would_be_seen(tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<!doctype html><script>no_such_function()</script>")
    _, console = browse(broken, tmp_path, "--dump-dom")
    assert any("no_such_function" in line for line in console)
