"""Whether arguments match a tool's input schema: one compiled validator per distinct schema.

Compiling costs tens of microseconds to milliseconds and a validator holds about 10 kB, so validators are kept by the
digest of the definition that they came from, bounded, and shared by all tenants: a schema holds nothing of anybody's.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

import anyio.to_thread
import jsonschema_rs
import msgspec

from gateway.errors import Fault

_MAX_FAULTS = 10
_INLINE_BYTES = 16 * 1024


class Validator(Protocol):
    """A compiled JSON Schema."""

    def is_valid(self, instance: object) -> bool:
        """Whether the instance conforms."""
        ...

    def iter_errors(self, instance: object) -> Any:
        """Each violation, with `message` and `instance_path`."""
        ...


class Validators:
    """Compiled validators by definition, least recently used dropped first."""

    def __init__(self, *, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._compiled: OrderedDict[bytes, Validator] = OrderedDict()

    async def of(self, definition: bytes) -> Validator:
        """The validator of a definition's input schema; a large one is compiled off the event loop."""
        digest = hashlib.blake2b(definition, digest_size=16).digest()
        found = self._compiled.get(digest)
        if found is not None:
            self._compiled.move_to_end(digest)
            return found
        if len(definition) > _INLINE_BYTES:
            made = await anyio.to_thread.run_sync(compile_input, definition)
        else:
            made = compile_input(definition)
        self._compiled[digest] = made
        if len(self._compiled) > self._capacity:
            self._compiled.popitem(last=False)
        return made


def compile_input(definition: bytes) -> Validator:
    """The validator of a listed definition's input schema (JSON Schema 2020-12, linear-time patterns, offline)."""
    schema: dict[str, Any] = msgspec.json.decode(definition)["inputSchema"]
    return jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
    )


def find_faults(validator: Validator, arguments: Mapping[str, object]) -> tuple[Fault, ...]:
    """Where and why the arguments break the schema, at most ten places; empty when they conform."""
    if validator.is_valid(arguments):
        return ()
    faults: list[Fault] = []
    for error in validator.iter_errors(arguments):
        pointer = "".join(f"/{_escape(part)}" for part in error.instance_path)
        faults.append(Fault(pointer=pointer, reason=_bounded(str(error.message))))
        if len(faults) == _MAX_FAULTS:
            break
    return tuple(faults)


def _escape(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _bounded(message: str, limit: int = 300) -> str:
    return message if len(message) <= limit else f"{message[: limit - 1]}…"
