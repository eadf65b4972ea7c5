"""Fetching a relation vector from a file or URL: bounded in size and time, checked, kept whole or not at all.

Standard library for the transfer. A URL is fetched with at most ``MAX_REDIRECTS`` redirects, and a redirect may not
leave http(s): a server cannot point the board at its own files.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO

import jsonschema

from traingov_policies.relation import RelationVector

from .store import write_atomically

MAX_BYTES = 1 << 20
"""A vector of 30 batch sizes with 20 runs each takes 20 KB."""
TIMEOUT_S = 20.0
"""Of the whole transfer, and of each wait in it."""
MAX_REDIRECTS = 5
_SCHEMA = Path(__file__).parent / "schemas" / "relation.json"


class FetchError(ValueError):
    """The source cannot be had, or is no relation vector: one line saying what is wrong. Nothing was written."""


class UnreachableError(FetchError):
    """The source cannot be had; it may be later."""


def fetch(source: str, timeout_s: float = TIMEOUT_S) -> RelationVector:
    """The relation vector in ``source``: a path, or a file, http or https URL. Raises FetchError."""
    data = read(source, timeout_s)
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise FetchError(f"{source}: is not UTF-8 text") from None
    except ValueError as error:
        raise FetchError(f"{source}: is not JSON: {error}") from None
    except RecursionError:
        raise FetchError(f"{source}: is nested too deeply") from None
    return checked(value, source)


def checked(value: Any, source: str) -> RelationVector:
    """``value`` as a relation vector, by the schema and by what a schema cannot say. Raises FetchError."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    errors = sorted(jsonschema.Draft7Validator(schema).iter_errors(value), key=lambda e: [str(p) for p in e.path])
    if errors:
        where = ".".join(str(key) for key in errors[0].path) or "document"
        raise FetchError(f"{source}: {where}: {errors[0].message[:200]}")
    try:
        return RelationVector.from_json(value)
    except ValueError as error:
        raise FetchError(f"{source}: {error}") from None


def keep(relation: RelationVector, directory: Path) -> Path:
    """Write ``relation`` into ``directory``, in place of what was fetched for that workload before. Raises OSError.

    The service takes the first file by name for a workload: an older one of another name is replaced where it lies.
    """
    path = directory / f"{_file_name(relation.workload)}.json"
    for other in sorted(directory.glob("*.json")):
        try:
            if json.loads(other.read_text(encoding="utf-8")).get("workload") == relation.workload:
                path = other
                break
        except (OSError, ValueError, AttributeError):
            continue  # a damaged file: the service passes it over too
    text = json.dumps(relation.to_json(), indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())
    return path


def read(source: str, timeout_s: float = TIMEOUT_S) -> bytes:
    """The bytes of ``source``, at most MAX_BYTES. Raises FetchError."""
    parts = urllib.parse.urlsplit(source)
    try:
        if parts.scheme in ("http", "https"):
            opener = urllib.request.build_opener(_Redirects)
            with opener.open(source, timeout=timeout_s) as answer:
                return _bounded(answer, source, time.monotonic() + timeout_s)
        if parts.scheme == "file":
            if parts.netloc not in ("", "localhost"):
                raise FetchError(f"{source}: a file URL names a file of this machine: file:///path")
            path = Path(urllib.request.url2pathname(parts.path))
        elif "://" in source:
            raise FetchError(f"{source}: use a path, or a file, http or https URL")
        else:
            path = Path(source)
        if not path.is_file():
            raise FetchError(f"{source}: is {'not a file' if path.exists() else 'not there'}")
        with path.open("rb") as file:
            return _bounded(file, source, time.monotonic() + timeout_s)
    except urllib.error.HTTPError as error:
        raise UnreachableError(
            f"{source}: the server answers {error.code} {' '.join(str(error.reason).split())}"
        ) from None
    except TimeoutError:
        raise UnreachableError(f"{source}: no answer within {timeout_s:g} s") from None
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        said = f"no answer within {timeout_s:g} s" if late else " ".join(str(error.reason).split())
        raise UnreachableError(f"{source}: {said}") from None
    except OSError as error:
        raise UnreachableError(f"{source}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        if isinstance(error, FetchError):
            raise
        raise FetchError(f"{source}: {error}") from None
    except Exception as error:  # http.client raises its own kinds for what is no HTTP
        raise UnreachableError(f"{source}: the answer is not HTTP ({type(error).__name__})") from None


def _bounded(stream: BinaryIO | Any, source: str, until_s: float) -> bytes:
    """Reads in pieces, so that neither a long nor a slow answer is waited out."""
    data = b""
    once = getattr(stream, "read1", stream.read)
    while piece := once(65536):
        data += piece
        if len(data) > MAX_BYTES:
            raise FetchError(f"{source}: is larger than {MAX_BYTES // 1024} KiB: not a relation vector")
        if time.monotonic() > until_s:
            raise TimeoutError
    expected = getattr(stream, "length", None)
    if expected:
        raise UnreachableError(f"{source}: the answer ended {expected} bytes early")
    return data


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MAX_REDIRECTS

    def redirect_request(self, *arguments: Any) -> Any:
        request, newurl = arguments[0], arguments[-1]
        # urllib itself refuses file:, but would go on to ftp:.
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            raise FetchError(f"{request.full_url}: redirects to {newurl}, which is not http or https")
        return super().redirect_request(*arguments)


def _file_name(workload: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", workload).strip("-.")[:80] or "unnamed"
