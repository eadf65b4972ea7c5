"""What this user may do, and where the service keeps its state."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..device.restore import JOURNAL_NAME
from .finding import ATTENTION, OK, PROBLEM, UNSEEN, Finding

_LITTLE_BYTES, _NEARLY_NONE_BYTES = 64 << 20, 4 << 20


@dataclass(frozen=True)
class User:
    """This process's user: ``held`` are its groups now, ``listed`` those that the group database gives it."""

    name: str
    uid: int
    held: frozenset[str]
    listed: frozenset[str]


def this_user() -> User:
    """Who runs this."""
    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(str(uid), uid, _names({*os.getgroups(), os.getegid()}), frozenset())
    return User(
        entry.pw_name,
        uid,
        _names({*os.getgroups(), os.getegid()}),
        _names(os.getgrouplist(entry.pw_name, entry.pw_gid)),
    )


def groups(user: User, user_group: str, admin_group: str, there: frozenset[str] | None = None) -> list[Finding]:
    """Whether ``user`` may register jobs and set caps. ``there``: the groups that exist (None: of this machine)."""
    return [
        _group(user, user_group, "register jobs and read", there),
        _group(user, admin_group, "set caps and policies", there),
    ]


def _group(user: User, group: str, may: str, there: frozenset[str] | None) -> Finding:
    check = f"group {group}"
    exists = group in there if there is not None else _exists(group)
    if user.uid == 0:
        return Finding(check, OK, f"root may {may}" + ("" if exists else f" (there is no group {group})"))
    if not exists:
        return Finding(
            check,
            ATTENTION,
            f"does not exist: only root and the service's own user may {may}",
            f"install the package, or sudo groupadd --system {group}",
        )
    if group in user.held:
        return Finding(check, OK, f"{user.name} may {may}")
    if group in user.listed:
        return Finding(
            check,
            ATTENTION,
            f"{user.name} is in it, but this login began before and does not know it",
            f"log out and in again (or, in this shell: newgrp {group})",
        )
    return Finding(
        check,
        ATTENTION,
        f"{user.name} is not in it and may not {may}",
        f"sudo adduser {user.name} {group}, then log out and in again",
    )


def state(directory: Path, answers: bool) -> list[Finding]:
    """The state folder: there, writable, with room, and nothing in it that was set aside or left over.

    ``answers``: a service runs, so that saved clocks are its own and not left over.
    """
    check = "state"
    if not directory.exists():
        return [Finding(check, OK if not answers else ATTENTION, f"{directory} is not there yet: the service makes it")]
    try:
        names = sorted(os.listdir(directory))
        damaged = sorted(str(path.relative_to(directory)) for path in directory.rglob("*.damaged-*"))
    except OSError as error:
        return [Finding(check, UNSEEN, f"{directory}: {error.strerror}", "run it as root, or join the service's group")]
    free = shutil.disk_usage(directory).free
    text = f"{directory}, {free / 2**20:.0f} MiB free"
    advice = "free some space: tables and history are not kept on a full disk"
    if free < _NEARLY_NONE_BYTES:
        out = [Finding(check, PROBLEM, text, advice)]
    elif free < _LITTLE_BYTES:
        out = [Finding(check, ATTENTION, text, advice)]
    elif os.statvfs(directory).f_flag & os.ST_RDONLY:
        out = [
            Finding(
                check, PROBLEM, f"{directory} lies on a read-only file system", "mount it writable, or change state_dir"
            )
        ]
    else:
        try:
            owner = directory.owner()
        except KeyError:
            owner = str(directory.stat().st_uid)
        out = [Finding(check, OK, f"{text}, owner {owner}")]
    if damaged:
        out.append(
            Finding(
                "set aside",
                ATTENTION,
                f"damaged files were set aside: {', '.join(damaged[:5])}",
                "look at them, then delete them: traingov goes on without",
            )
        )
    if JOURNAL_NAME in names and not answers:
        out.append(
            Finding(
                "saved clocks",
                PROBLEM,
                f"{directory / JOURNAL_NAME}: a service was killed while it held the clock",
                "sudo traingov restore, or start the service: both give it back",
            )
        )
    return out


def _exists(group: str) -> bool:
    try:
        grp.getgrnam(group)
    except KeyError:
        return False
    return True


def _names(gids: Iterable[int]) -> frozenset[str]:
    names = set()
    for gid in gids:
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except KeyError:
            names.add(str(gid))
    return frozenset(names)
