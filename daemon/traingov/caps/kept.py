"""Caps set by command, on disk: in force again after a restart, until they are cleared or lapse.

A time to live counts on over a restart of the service. After another boot it begins anew: monotonic time begins anew
too, and wall-clock time decides nothing.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traingov_policies.caps import Claim
from traingov_policies.values import Cap

from ..store import set_aside, write_atomically

log = logging.getLogger("traingov.caps")

SCHEMA = "traingov.caps/1"


def read_claims(path: Path, boot: str, now_s: float) -> dict[str, Claim]:
    """The kept claims by source; none where there is no file. A damaged one is set aside with a message."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if "claims" not in data:  # as the service wrote it before a cap could have several sources
            data = {"boot": boot, "claims": [] if data["cap"] is None else [{"source": "command", "cap": data["cap"]}]}
        return {c.source: c for c in (_claim(entry, data["boot"] == boot, now_s) for entry in data["claims"])}
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("%s cannot be read (%s): caps set by command are not in force", path, error.strerror)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError) as error:
        set_aside(path, str(error))
    return {}


def write_claims(path: Path, boot: str, claims: Mapping[str, Claim]) -> None:
    """Keep the claims. Raises OSError."""
    entries = [{**vars(claim), "cap": vars(claim.cap)} for claim in claims.values()]
    write_atomically(path, json.dumps({"schema": SCHEMA, "boot": boot, "claims": entries}).encode())


def _claim(entry: Mapping[str, Any], same_boot: bool, now_s: float) -> Claim:
    ttl_s, expires_s, uid, set_at = (entry.get(name) for name in ("ttl_s", "expires_s", "uid", "set_at"))
    if not isinstance(uid, (int, type(None))) or not isinstance(set_at, (str, type(None))):
        raise ValueError("uid or set_at is not what the service writes")
    if ttl_s is not None:
        ttl_s = float(ttl_s)
        expires_s = float(expires_s) if same_boot and expires_s is not None else now_s + ttl_s
        if not math.isfinite(expires_s):
            raise ValueError("a time to live that is no number")
    return Claim(
        str(entry["source"]),
        Cap(**entry["cap"]),
        uid,
        set_at,
        bool(entry.get("override", False)),
        ttl_s,
        None if ttl_s is None else expires_s,
    )
