"""The page that Prometheus reads: its text format 0.0.4, written from plain values.

Written here in 60 lines and not by prometheus-client: that library loads an HTTP client, an HTTP server and OpenSSL
with it, 3.5 MB in a service that shall stay below 45 MB. Its parser checks this page in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .names import METRICS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LABEL_MOST = 100  # characters of a label's value; a longer one is cut


class Readings:
    """Values by metric and labels, at one moment. What is not known is not put in, or as None."""

    def __init__(self) -> None:
        self._samples: dict[str, list[tuple[str, str, float]]] = {}

    def put(self, name: str, value: float | None, *labels: str) -> None:
        """A sample of a gauge or counter; None leaves it out. ``labels``: values in the order of the metric's labels.

        Raises KeyError for a metric that names.py does not have, ValueError for a wrong number of labels.
        """
        metric = METRICS[name]
        if value is None:
            return
        pairs = zip(metric.labels, labels, strict=True)
        self._samples.setdefault(name, []).append(("", _braced(pairs), float(value)))

    def put_histogram(self, name: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> None:
        """A histogram: ``counts[i]`` values at most ``bounds[i]``, and in the last count those above all bounds."""
        rows = self._samples.setdefault(name, [])
        running = 0
        for bound, count in zip((*bounds, float("inf")), counts, strict=True):
            running += count
            rows.append(("_bucket", _braced([("le", _number(bound))]), float(running)))
        rows.append(("_sum", "", total))
        rows.append(("_count", "", float(running)))

    def page(self) -> bytes:
        """The text, in the order of names.py; a metric without a sample is not on it."""
        lines: list[str] = []
        for name, metric in METRICS.items():
            if name in self._samples:
                lines.append(f"# HELP {name} {_escaped(metric.help)}")
                lines.append(f"# TYPE {name} {metric.kind}")
                lines.extend(f"{name}{end}{labels} {_number(value)}" for end, labels, value in self._samples[name])
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _braced(pairs: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{_label(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _label(value: str) -> str:
    return _escaped(value[:_LABEL_MOST]).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
