"""Readings from the service of jetson-stats, for containers that get its socket (/run/jtop.sock) and no sysfs.

The package ``jtop`` (jetson-stats) is imported when the first reading is asked for; traingov neither needs nor
contains it. Its service reads the board for all its clients at one pace, about once a second as it comes, so a cap
is followed that much later. Client and service have to be of one version: the package says so when they are not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .interface import MeterError
from .reading import Reading

SOCKET = "/run/jtop.sock"
_INTERVAL_S = 0.5


class JtopMeter:
    """A client of the jtop service."""

    name = "jtop"
    least_interval_s = _INTERVAL_S

    def __init__(self) -> None:
        self._client: Any = None

    def read(self) -> Reading:
        """The service's next reading; waits for it. Raises MeterError with what the package says."""
        client = self._client
        try:
            if client is None:
                client = import_module("jtop").jtop(interval=_INTERVAL_S)
                client.start()
                self._client = client
            if not client.ok():
                raise MeterError("the jtop service gave nothing: systemctl status jtop")
            return reading_of(client.power, client.gpu, client.temperature)
        except MeterError:
            raise
        except ImportError:
            raise MeterError("the package jetson-stats is not installed: pip install jetson-stats") from None
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise MeterError(f"jtop: {text}") from None

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.close()


def reading_of(power: Mapping[str, Any], gpus: Mapping[str, Any], temperatures: Mapping[str, Any]) -> Reading:
    """What the client's ``power`` (mW), ``gpu`` (kHz, percent) and ``temperature`` (°C) say.

    The client takes the input rail out of the rails and shows it as the total, with its name; a total without a
    name is a sum of its own making, and left out.
    """
    rails: dict[str, float] = {}
    total = power.get("tot") or {}
    shown = dict(power.get("rail") or {})
    if isinstance(total, Mapping) and total.get("name"):
        shown[str(total["name"])] = total
    for rail, values in shown.items():
        milliwatts = _number(values.get("power")) if isinstance(values, Mapping) else None
        if milliwatts is not None:
            rails[str(rail)] = milliwatts / 1000
    gpu: Mapping[str, Any] = next(iter(gpus.values()), {}) if gpus else {}
    load = _number((gpu.get("status") or {}).get("load"))
    khz = _number((gpu.get("freq") or {}).get("cur"))
    found: dict[str, float] = {}
    for zone, values in temperatures.items():
        celsius = _number(values.get("temp")) if isinstance(values, Mapping) and values.get("online", True) else None
        if celsius is not None and celsius > -200:
            found[str(zone)] = celsius
    return Reading(
        rails_w=rails,
        gpu_utilization=load / 100 if load is not None and 0 <= load <= 100 else None,
        gpu_frequency_hz=round(khz * 1000) if khz is not None and khz >= 0 else None,
        temperatures_celsius=found,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
