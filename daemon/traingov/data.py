"""Where the files of ``etc/`` lie: beside the package in a wheel, at the top of the tree in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir() -> Path:
    """The folder that holds ``boards/`` and the other files of ``etc/``.

    Raises FileNotFoundError, naming both places that were looked at, when the installation is incomplete.
    """
    installed = _PACKAGE / "etc"
    checkout = _PACKAGE.parent.parent / "etc"
    for candidate in (installed, checkout):
        if (candidate / "boards").is_dir():
            return candidate
    raise FileNotFoundError(
        f"traingov's data files are missing: neither {installed} nor {checkout} has boards/; reinstall traingov"
    )
