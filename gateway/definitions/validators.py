"""Whether arguments match a tool's input schema: one compiled validator per distinct schema.

Compiling costs tens of microseconds to milliseconds and a validator holds about 10 kB, so validators are kept by the
digest of the definition that they came from, bounded, and shared by all tenants: a schema holds nothing of anybody's.

No arguments can make a check long. Where a schema multiplies the work with the depth of a value, the work is counted
before it is done; and a failure is explained in detail only where that is cheap.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import anyio.to_thread
import jsonschema_rs
import msgspec

from gateway.definitions.dialects import compile_schema, dialect_of
from gateway.definitions.schema_costs import MOST_CHECKS, most_checks, multiplies
from gateway.definitions.schema_tree import SchemaTree, TooLarge
from gateway.definitions.shapes import as_list, as_object, point
from gateway.definitions.value_costs import MOST_EXPLAINED, MOST_LOOKS, MOST_PLAIN_LOOKS, ValueCosts, count_parts
from gateway.errors import Fault

_MAX_FAULTS = 10
_INLINE_BYTES = 16 * 1024
_MOST_SCHEMAS = 20_000
_MOST_TRIED = 20
_REFERRING = b'ef"'
"""How every keyword that refers ends."""

_WHOLE = "urn:gateway:schema"
_TOO_COSTLY = "is nested too deeply for this schema to be checked"
_UNEXPLAINED = "does not match its schema; it is too large or too intricate to say where"


class Violation(Protocol):
    """One place where a value breaks a schema."""

    @property
    def message(self) -> str:
        """Why."""
        ...

    @property
    def instance_path(self) -> Iterable[str | int]:
        """Where."""
        ...


class Validator(Protocol):
    """A compiled JSON Schema."""

    def is_valid(self, instance: object) -> bool:
        """Whether the instance conforms."""
        ...

    def iter_errors(self, instance: object) -> Iterable[Violation]:
        """Each violation."""
        ...


class Validators:
    """Compiled validators by definition, least recently used dropped first."""

    def __init__(self, *, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._compiled: OrderedDict[bytes, Validator] = OrderedDict()

    async def of(self, definition: bytes) -> Validator:
        """The validator of a definition's input schema; a large one is compiled off the event loop."""
        return await self._find(definition, b"input", compile_input)

    async def of_output(self, definition: bytes) -> Validator | None:
        """The validator of a definition's output schema; None when it declares none."""
        if b'"outputSchema"' not in definition or "outputSchema" not in msgspec.json.decode(definition):
            return None
        return await self._find(definition, b"output", compile_output)

    async def _find(self, definition: bytes, part: bytes, make: Callable[[bytes], Validator]) -> Validator:
        digest = hashlib.blake2b(definition, digest_size=16, person=part).digest()
        found = self._compiled.get(digest)
        if found is not None:
            self._compiled.move_to_end(digest)
            return found
        if len(definition) > _INLINE_BYTES:
            made = await anyio.to_thread.run_sync(make, definition)
        else:
            made = make(definition)
        self._compiled[digest] = made
        if len(self._compiled) > self._capacity:
            self._compiled.popitem(last=False)
        return made


def compile_input(definition: bytes) -> Validator:
    """The validator of a listed definition's input schema, in its own dialect (patterns linear-time, offline)."""
    return _compile(definition, "inputSchema")


def compile_output(definition: bytes) -> Validator:
    """The validator of a listed definition's output schema."""
    return _compile(definition, "outputSchema")


def _compile(text: bytes, member: str) -> Validator:
    plain = _Plain(text, member)
    if _REFERRING not in text:  # without references nothing is multiplied
        return plain
    tree = plain.read()
    is_dear = tree is None or multiplies(tree) or most_checks(tree) > MOST_CHECKS
    return _Wary(plain, tree) if is_dear else plain


def find_faults(validator: Validator, arguments: Mapping[str, object]) -> tuple[Fault, ...]:
    """Where and why the arguments break the schema, at most ten places; empty when they conform."""
    if validator.is_valid(arguments):
        return ()
    faults: list[Fault] = []
    for error in validator.iter_errors(arguments):
        faults.append(Fault(pointer=point(*error.instance_path), reason=_bounded(str(error.message))))
        if len(faults) == _MAX_FAULTS:
            break
    return tuple(faults)


@dataclass(frozen=True, slots=True)
class _Told:
    message: str
    instance_path: tuple[str | int, ...] = ()


class _Plain:
    """A validator whose checks are cheap by themselves; what explaining costs is looked at first.

    It keeps the text that the tool has anyway, and reads the schema again where a failure is explained.
    """

    __slots__ = ("_compiled", "_member", "_text")

    def __init__(self, text: bytes, member: str) -> None:
        self._text = text
        self._member = member
        self._compiled: Any = compile_schema(self._schema())

    def is_valid(self, instance: object) -> bool:
        """Whether the instance conforms."""
        return bool(self._compiled.is_valid(instance))

    def iter_errors(self, instance: object) -> Iterator[Violation]:
        """Each violation; only the argument that breaks the schema where finding the place would take long."""
        if self._is_small(instance):
            yield from self._compiled.iter_errors(instance)
            return
        tree = self.read()
        if tree is not None and ValueCosts(tree).is_cheap(instance):
            yield from self._compiled.iter_errors(instance)
        else:
            yield from _tell_roughly(self._schema(), instance)

    def read(self) -> SchemaTree | None:
        """The schema as a tree; None when it is too large for one."""
        try:
            return SchemaTree(self._schema(), most=_MOST_SCHEMAS)
        except TooLarge:
            return None

    def _schema(self) -> dict[str, object]:
        definition: dict[str, dict[str, object]] = msgspec.json.decode(self._text)
        return definition[self._member]

    def _is_small(self, instance: object) -> bool:
        """Whether all schemas together cannot look at the instance too often; there are no more than braces."""
        most = MOST_EXPLAINED // (1 + self._text.count(b"{"))
        return _REFERRING not in self._text and count_parts(instance, most=most) <= most


class _Wary:
    """A validator whose work is counted before each check, because a deep value could multiply it."""

    __slots__ = ("_costs", "_plain")

    def __init__(self, plain: _Plain, tree: SchemaTree | None) -> None:
        self._plain = plain
        self._costs = None if tree is None else ValueCosts(tree)

    def is_valid(self, instance: object) -> bool:
        """Whether the instance conforms; one that would take too long to check does not."""
        return self._is_cheap(instance) and self._plain.is_valid(instance)

    def iter_errors(self, instance: object) -> Iterator[Violation]:
        """Each violation."""
        if self._is_cheap(instance):
            yield from self._plain.iter_errors(instance)
        else:
            yield _Told(_TOO_COSTLY)

    def _is_cheap(self, instance: object) -> bool:
        costs = self._costs
        return costs is not None and costs.is_cheap(instance, most=MOST_LOOKS, most_plain=MOST_PLAIN_LOOKS)


def _tell_roughly(schema: dict[str, object], instance: object) -> Iterator[Violation]:
    """Which arguments are missing or wrong, without the place inside them."""
    members = as_object(instance) or {}
    required = as_list(schema.get("required")) or ()
    told = [_Told(f'"{name}" is a required property') for name in required if name not in members]
    known = as_object(schema.get("properties")) or {}
    dialect = dialect_of(schema)
    registry = jsonschema_rs.Registry([(_WHOLE, schema)], draft=dialect.draft)
    for name in [name for name in members if name in known][:_MOST_TRIED]:
        part = dialect.compile({"$ref": f"{_WHOLE}#{point('properties', name)}"}, registry=registry)
        if not part.is_valid(members[name]):
            told.append(_Told(_UNEXPLAINED, (name,)))
    yield from told or [_Told(_UNEXPLAINED)]


def _bounded(message: str, limit: int = 300) -> str:
    return message if len(message) <= limit else f"{message[: limit - 1]}…"
