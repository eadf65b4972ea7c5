"""Configuration: YAML files laid over one another, checked against the schema; errors name key path and line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from traingov_policies.drift.settings import DriftSettings
from traingov_policies.following import FollowSettings
from traingov_policies.guarding.options import GuardSettings
from traingov_policies.idling import IdleSettings
from traingov_policies.search.options import SearchSettings
from traingov_policies.settings import ProfileSettings, Settings
from traingov_policies.tree import Tree
from traingov_policies.values import Cap, Objective, PolicyName

from .caps.options import CapOptionError, CapOptions, cap_of, cap_options
from .data import data_dir
from .metrics.access import MetricsOptions, metrics_options
from .schema_check import Check, Problem, check
from .telemetry.rails import Correction, RailRule

SYSTEM_FILE = Path("/etc/traingov/traingov.yaml")
_SCHEMAS = Path(__file__).parent / "schemas"
_WHOLE = ("cap", "schedule", "fallback")


class ConfigError(ValueError):
    """The configuration is wrong; the message is one line: file, line, key path, and what is wrong."""


@dataclass(frozen=True)
class Config:
    """The configuration as the service uses it. ``values`` is the merged document."""

    root: str
    telemetry: str
    tegrastats: tuple[str, ...]
    socket: Path
    state_dir: Path
    cap: Cap | None
    cap_sources: CapOptions
    user_group: str
    admin_group: str
    log_level: str
    metrics: MetricsOptions | None
    values: Mapping[str, Any]

    def guard(self, rule: RailRule) -> GuardSettings:
        """The guard's settings; the board's own dead time where the files leave it null."""
        given = {k: x for k, x in self.values["guard"].items() if x is not None}
        zones = given.pop("zone_ceilings_celsius", {})
        ceilings = tuple(sorted((zone, float(celsius)) for zone, celsius in zones.items() if celsius is not None))
        return GuardSettings(**{"dead_time_s": rule.dead_time_s, **given, "zone_ceilings_celsius": ceilings})

    @property
    def corrections(self) -> dict[str, Correction]:
        """Gain and offset of each rail that has any."""
        return {name: Correction(**given) for name, given in self.values["rails"].items() if given is not None}

    def settings(self, rule: RailRule) -> Settings:
        """The governor's settings; the board's own times where the files leave them null.

        Raises ConfigError when the decision tree cannot be read.
        """
        v = self.values
        profile = {k: x for k, x in v["profile"].items() if x is not None}
        fixed_hz = v["fixed"]["gpu_frequency_hz"]
        policy = PolicyName(v["policy"])
        tree_name = v["energy"]["tree"]
        if policy is PolicyName.FIXED and fixed_hz is None:
            tree_name = "ffg"
        return Settings(
            policy=policy,
            objective=Objective(v["objective"]),
            tree=None if tree_name is None else load_tree(tree_name),
            fixed_frequency_hz=fixed_hz,
            profile=ProfileSettings(**{"settle_s": rule.settle_s, **profile}),
            guard=self.guard(rule),
            search=_search(v["energy"]),
            drift=_drift(v["drift"]),
            idle=IdleSettings(**v["idle"]),
            following=_following(v["following"]),
            sampling_interval_s=v["sampling"]["interval_s"],
            idle_interval_s=v["sampling"]["idle_interval_s"],
            stale_after_s=v["sampling"]["stale_after_s"],
            reference_window_s=v["energy"]["reference_window_s"],
            apply_timeout_s=v["apply_timeout_s"],
            violation_probability=v["choice"]["violation_probability"],
        )


def load_config(files: Iterable[Path] | None = None, check_schema: Check = check) -> Config:
    """Defaults, then ``files`` in order (None: /etc/traingov/traingov.yaml and its conf.d/*.yaml, where present).

    ``check_schema``: schema_check.check, or check_apart where memory counts.
    Raises ConfigError; a named file that does not exist is an error, an absent system file is not.
    """
    layers = [data_dir() / "traingov.yaml"]
    if files is None:
        layers += [p for p in (SYSTEM_FILE, *sorted((SYSTEM_FILE.parent / "conf.d").glob("*.yaml"))) if p.exists()]
    else:
        layers += list(files)
    merged: dict[str, Any] = {}
    for data in _read(layers, check_schema):
        merged = _merge(merged, data)
    cap = merged["cap"]
    try:
        return Config(
            root=merged["root"],
            telemetry=merged["telemetry"],
            tegrastats=_command(merged["tegrastats"]),
            socket=Path(merged["socket"]),
            state_dir=Path(merged["state_dir"]),
            cap=None if cap is None else cap_of(cap),
            cap_sources=cap_options(merged["cap_sources"]),
            user_group=merged["groups"]["users"],
            admin_group=merged["groups"]["admins"],
            log_level=merged["log_level"],
            metrics=metrics_options(merged["metrics"]),
            values=merged,
        )
    except ValueError as error:
        raise ConfigError(f"{layers[-1]}: {error}") from None


def _read(paths: Sequence[Path], check_schema: Check) -> list[dict[str, Any]]:
    """The files' documents, checked. Raises ConfigError."""
    read = [(path, *_parse(path)) for path in paths]
    problems = check_schema(str(_SCHEMAS / "config.json"), [data for _, _, data in read])
    for (path, node, data), problem in zip(read, problems, strict=True):
        if problem is not None:
            raise ConfigError(_where(path, node, problem))
        if data.get("cap") is not None:
            try:
                cap_of(data["cap"])
            except ValueError as error:
                raise ConfigError(f"{path}:{_line_of(node, ['cap'])}: {error}") from None
        try:
            cap_options(data.get("cap_sources") or {})
        except CapOptionError as error:
            where = f"{path}:{_line_of(node, error.keys)}: {'.'.join(error.keys)}"
            raise ConfigError(f"{where}: {error}") from None
    return [data for _, _, data in read]


def _where(path: Path, node: Any, problem: Problem) -> str:
    """The problem in one line, with the line and the key path."""
    keys = [*problem.keys, *([] if problem.unknown is None else [problem.unknown])]
    message = problem.message if problem.unknown is None else "unknown key; see the defaults in traingov.yaml"
    return f"{path}:{_line_of(node, keys)}: {'.'.join(keys) or 'document'}: {message}"


def _parse(path: Path) -> tuple[Any, Any]:
    """One file: its YAML nodes (for the lines) and its values. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text: byte {error.start}") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (ValueError, OverflowError) as error:  # a scalar that looks like a date or number and is none
        raise ConfigError(f"{path}: a value cannot be read: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f":{mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{path}{where}: is not YAML: {' '.join(str(problem).split())}") from None
    if data is None:
        return None, {}
    try:
        leaves = list(_leaves(data, []))
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deeply") from None
    odd = _key_that_is_no_text(node)
    if odd is not None:
        raise ConfigError(
            f"{path}:{odd.start_mark.line + 1}: the key {odd.value} is no text to YAML: put it into quotation marks"
        )
    for keys, value in leaves:
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{path}:{_line_of(node, keys)}: {'.'.join(keys)}: must be a finite number, not {value}")
        if isinstance(value, str) and not value.isprintable():
            raise ConfigError(f"{path}:{_line_of(node, keys)}: {'.'.join(keys)}: must be printable text, not {value!r}")
    return node, data


def load_tree(name: str) -> Tree:
    """A decision tree by name (in etc/trees) or path. Raises ConfigError naming the file."""
    path = Path(name) if "/" in name else data_dir() / "trees" / f"{name}.json"
    try:
        return Tree.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"energy.tree: {path} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"energy.tree: {path}: {error}") from None


def _following(values: Mapping[str, Any]) -> FollowSettings:
    try:
        return FollowSettings(**values)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _drift(values: Mapping[str, Any]) -> DriftSettings:
    try:
        return DriftSettings(**values)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _search(values: Mapping[str, Any]) -> SearchSettings:
    known = {k: x for k, x in values.items() if k not in ("tree", "reference_window_s", "search", "objective")}
    return SearchSettings(enabled=values["search"], objective=Objective(values["objective"]), **known)


def _leaves(value: Any, keys: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Every scalar of a document with the keys that lead to it; keys themselves count as scalars."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield [*keys, str(key)], key
            yield from _leaves(item, [*keys, str(key)])
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, [*keys, str(number)])
    else:
        yield keys, value


def _key_that_is_no_text(node: Any) -> Any:
    """The first key, such as 22:00 (to YAML a number in base 60), that is no text; None where all are."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                return key
            if (found := _key_that_is_no_text(value)) is not None:
                return found
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            if (found := _key_that_is_no_text(value)) is not None:
                return found
    return None


def _command(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        # A cap is one value: half of one over half of another would be a cap that nobody set. So is a schedule.
        if isinstance(value, dict) and isinstance(merged.get(key), dict) and key not in _WHOLE:
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _line_of(node: Any, keys: list[str]) -> int:
    """The line (from 1) where the value under ``keys`` stands."""
    line = 1 if node is None else node.start_mark.line + 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if str(k.value) == key), None)
            if pair is None:
                return line
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
        else:
            return line
    return int(line)
