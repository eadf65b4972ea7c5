"""Checks of what arrives in ``params``: each knows how to read a value and how to describe itself.

``schema()`` is the JSON Schema of what ``parse`` takes; a test holds docs/openrpc.json to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .jsonrpc import INVALID_PARAMS, RpcError

MAX_LIST = 64
MAX_TEXT = 256


def bad(where: str, text: str) -> RpcError:
    """The error for the field ``where``."""
    return RpcError(INVALID_PARAMS, f"{where} {text}")


class Check(Protocol):
    """Reads one value."""

    def parse(self, value: object, where: str) -> Any:
        """The value, checked. Raises RpcError(-32602) naming the field."""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what ``parse`` takes."""


@dataclass(frozen=True)
class Integer:
    """A whole number in ``low`` .. ``high``, both taken. A float is refused even when it is whole."""

    low: int
    high: int

    def parse(self, value: object, where: str) -> int:
        """See Check."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise bad(where, f"must be a whole number from {self.low} to {self.high}")
        return value

    def schema(self) -> dict[str, Any]:
        """See Check."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number:
    """A finite number above ``above`` and at most ``high``."""

    above: float
    high: float

    def parse(self, value: object, where: str) -> float:
        """See Check."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.above < value <= self.high:
            raise bad(where, f"must be a number above {self.above:g} and at most {self.high:g}")
        return float(value)

    def schema(self) -> dict[str, Any]:
        """See Check."""
        return {"type": "number", "exclusiveMinimum": self.above, "maximum": self.high}


@dataclass(frozen=True)
class Text:
    """One to ``max_length`` printable characters."""

    max_length: int = MAX_TEXT

    def parse(self, value: object, where: str) -> str:
        """See Check."""
        if not isinstance(value, str) or not 1 <= len(value) <= self.max_length or not value.isprintable():
            raise bad(where, f"must be 1 to {self.max_length} printable characters")
        return value

    def schema(self) -> dict[str, Any]:
        """See Check."""
        return {"type": "string", "minLength": 1, "maxLength": self.max_length}


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def parse(self, value: object, where: str) -> str:
        """See Check."""
        if not isinstance(value, str) or value not in self.words:
            raise bad(where, f"must be one of {', '.join(self.words)}")
        return value

    def schema(self) -> dict[str, Any]:
        """See Check."""
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def parse(self, value: object, where: str) -> bool:
        """See Check."""
        if not isinstance(value, bool):
            raise bad(where, "must be true or false")
        return value

    def schema(self) -> dict[str, Any]:
        """See Check."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class ListOf:
    """One to ``max_length`` different values."""

    item: Check
    max_length: int = MAX_LIST
    unique: bool = True

    def parse(self, value: object, where: str) -> tuple[Any, ...]:
        """See Check."""
        if not isinstance(value, list) or not 1 <= len(value) <= self.max_length:
            raise bad(where, f"must be a list of 1 to {self.max_length} values")
        items = tuple(self.item.parse(item, f"{where}[{i}]") for i, item in enumerate(value))
        if self.unique and len(set(items)) != len(items):
            raise bad(where, "must not repeat a value")
        return items

    def schema(self) -> dict[str, Any]:
        """See Check."""
        schema = {"type": "array", "items": self.item.schema(), "minItems": 1, "maxItems": self.max_length}
        return {**schema, "uniqueItems": True} if self.unique else schema


@dataclass(frozen=True)
class Field:
    """A member of ``params``. One that is not required may be left out or null; both read as ``default``."""

    name: str
    check: Check
    required: bool = True
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the member, null taken where it may be left out."""
        schema = self.check.schema()
        if not self.required:
            schema["type"] = [schema["type"], "null"]
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
        return schema


@dataclass(frozen=True)
class Record:
    """An object with the members ``fields`` and no others."""

    fields: tuple[Field, ...] = field(default=())

    def parse(self, value: object, where: str) -> dict[str, Any]:
        """See Check. Every field is in what comes back, with its default where it was left out."""
        prefix = f"{where}." if where else ""
        if not isinstance(value, Mapping):
            raise bad(where or "params", "must be an object")
        known = {member.name for member in self.fields}
        for name in value:
            if name not in known:
                allowed = ", ".join(sorted(known)) or "none"
                raise bad(f"{prefix}{name[:MAX_TEXT]!a}", f"is not known here (known: {allowed})")
        out: dict[str, Any] = {}
        for member in self.fields:
            raw = value.get(member.name)
            if raw is None:
                if member.required:
                    raise bad(f"{prefix}{member.name}", "is missing")
                out[member.name] = member.default
            else:
                out[member.name] = member.check.parse(raw, f"{prefix}{member.name}")
        return out

    def schema(self) -> dict[str, Any]:
        """See Check."""
        return {
            "type": "object",
            "properties": {member.name: member.schema() for member in self.fields},
            "required": [member.name for member in self.fields if member.required],
            "additionalProperties": False,
        }
