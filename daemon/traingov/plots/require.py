"""Loading matplotlib where it is wanted, or one clear line where it is absent."""

from __future__ import annotations

import importlib
from typing import Any


class MissingPlotsError(Exception):
    """matplotlib cannot be loaded; the message says what to do."""


def matplotlib_module(name: str) -> Any:
    """A module of matplotlib ("figure" draws without a display). Raises MissingPlotsError."""
    try:
        return importlib.import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise MissingPlotsError(
            f"plots need matplotlib ({error}): pip install 'traingov[plots]', or apt-get install python3-matplotlib"
        ) from None
