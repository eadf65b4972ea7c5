"""Fuzzes with coverage (atheris): `python tests/fuzz/run.py [--seconds N] [TARGET...]`; without a name, every target.

Each target runs for N seconds in a process of its own, from its seeds and what build/fuzz/NAME holds of earlier runs.
An input that breaks something is written to build/fuzz/NAME-…; put it into tests/fuzz/found/NAME once it is mended:
it is a test from then on (test_fuzz_targets.py). Exit status 1 where a target broke. Needs
`pip install --target .venvs/fuzz -r tests/fuzz/requirements.txt`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
LIBRARY = REPOSITORY / ".venvs" / "fuzz"
BUILD = REPOSITORY / "build" / "fuzz"
NAMES = (
    *("socket", "tegrastats", "cap-file", "kept-caps", "restore-journal", "tables", "relations", "curves", "sweeps"),
    *("history", "tree", "recording", "check-json", "check-yaml", "check-recording", "check-recording-gz"),
)
_MOST_BYTES = {"history": 120_000, "recording": 60_000, "check-recording": 60_000}


def main() -> int:
    """Run the targets one after another; 1 where one broke, 3 without atheris."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[*NAMES, []], metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=3, help="for each target (default 3)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        _fuzz(options.targets[0], options.seconds)
    broken = []
    for name in options.targets or NAMES:
        command = [sys.executable, __file__, "--inside", "--seconds", str(options.seconds), name]
        path = os.pathsep.join([str(LIBRARY), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        if "No module named 'atheris'" in said:
            print("left out: atheris is not installed: pip install --target .venvs/fuzz -r tests/fuzz/requirements.txt")
            return 3
        last = [line for line in said.splitlines() if line.startswith("#") or line.startswith("Done ")]
        print(f"{name:20} {'broken' if done.returncode else 'holds'}: {last[-1].strip() if last else ''}", flush=True)
        if done.returncode:
            broken.append(name)
            print("\n".join(line for line in said.splitlines()[-60:] if not line.startswith("#")), flush=True)
    print(f"fuzzed: {len(options.targets or NAMES)} targets, {len(broken)} broken")
    return 1 if broken else 0


def _fuzz(name: str, seconds: int) -> None:
    import atheris  # noqa: PLC0415

    sys.path.insert(0, str(HERE))
    with atheris.instrument_imports(include=["traingov", "traingov_policies"]):
        from targets import TARGETS, seeds  # noqa: PLC0415
    corpus, first = BUILD / name, BUILD / f"{name}.seeds"
    corpus.mkdir(parents=True, exist_ok=True)
    first.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (first / str(number)).write_bytes(seed)
    arguments = [
        sys.argv[0], str(corpus), str(first), f"-max_total_time={seconds}", f"-artifact_prefix={BUILD}/{name}-",
        f"-max_len={_MOST_BYTES.get(name, 16_384)}", "-timeout=20", "-rss_limit_mb=1024", "-print_final_stats=0",
    ]  # fmt: skip
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
