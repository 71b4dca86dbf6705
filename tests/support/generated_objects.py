"""Objects with another value than the default in every member, generated from the declarations of all kinds.

An object begins as the example of its kind, or as a further one below, and has a value for every other member. The
gateway decides which of them go together: an application is tried as a dry run, and a member that a refusal names gets
its next value, or is left out. A kind has as many objects as it needs for all its members.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
from pydantic import TypeAdapter, ValidationError

from gateway.domain.json_access import tokens_of
from gateway.domain.members.markers import Names
from gateway.domain.members.secret import Secret
from gateway.kinds.identity import MANAGED_ISSUER
from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import Declared, key_member, kind_in_manifests
from gateway.kinds.members import (
    REQUIRED,
    Member,
    element_of,
    entries_of,
    is_declared,
    members_of,
    settable,
    split,
    without_none,
)
from gateway.kinds.singletons import SINGLETONS
from gateway.kinds.sources import OVERRIDE
from gateway.web.kinds.annotations import sent_type
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.kinds import with_key
from tests.support.manifests import Manifest, send, tenant_for_manifests
from tests.support.upstream import RecordingUpstream

EVERY: Sequence[Declared] = (*KINDS, MANAGED_ISSUER, *SINGLETONS)
_URL = re.compile(r"https://[\w.-]+")
_HOSTS = sorted({url for kind in EVERY for url in _URL.findall(msgspec.json.encode(kind.example).decode())})
"""The hosts of all examples, so that a generated list of origins permits the URLs of generated objects."""
SECRET = "s3cr3t-of-generated-objects"
"""The value of secrets, which no response may have."""
_TEXTS = ("generated-1", f"{_HOSTS[0]}/generated", "X-GENERATED", "10.0.0.9:8443", "10.0.0.9")
_NUMBERS = (5_000, 7, 1, 2.5)
_ORIGINS = {"origins": _HOSTS}
_OF_USER = {"kind": "user", "place": "bearer", "client_id": "gateway", "value": SECRET, **_ORIGINS}
_ENDPOINTS = dict.fromkeys(("authorization_url", "token_url", "revocation_url"), f"{_HOSTS[0]}/generated")
_HOOK = {"url": _HOSTS[0], "credential": "vendor1"}
_MOST_TRIES = 50
_MOST_OPERATIONS = 120
_NEUTRAL: Mapping[str, Mapping[str, object]] = {"override": {"enabled": True, "result": {}}}
"""Values that mean the same as the default, as which the gateway stores them."""


def operation_of(number: int) -> str:
    """The operation that the override of this number changes; an operation has one override."""
    return f"GET /generated/{number}" if number else "GET /pets"


def _operation(number: int) -> dict[str, Any]:
    any_value: list[dict[str, Any]] = [{"name": "generated", "in": "query", "schema": {}}]
    return {"operationId": f"op_{number}", "parameters": any_value, "responses": {"200": {"description": "Done."}}}


_DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example"}],
    "paths": {operation_of(n).removeprefix("GET "): {"get": _operation(n)} for n in range(_MOST_OPERATIONS)},
}
UNREACHED = {("credential", "reference"): "needs a store: tests/behaviour/admin/test_secret_references.py"}
"""Members that no generated object has, and the reason."""


def _further(provider: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Objects of kinds in which members exclude each other. The first credential signs requests of hooks."""
    return {
        "credential": (
            {"place": "bearer", "value": "whsec_YSBrZXkgb2YgaG9va3MgaW4gdGhlIGdvbGRlbiByb3dz", **_ORIGINS},
            {"place": "header", "field": "X-Key", "value": SECRET, **_ORIGINS},
            {"place": "basic", "username": SECRET, "password": SECRET, **_ORIGINS},
            {**_OF_USER, **_ENDPOINTS},
            {**_OF_USER, "server": provider},
            {**_OF_USER, "kind": "exchange", "issuer": "corp"},
        ),
        "override": ({"source": "pets", "result": {"pointer": "/generated"}},),
        "guardrail": (
            {"check": "secrets", "phases": ["call"], "action": "block", "patterns": ["aws-access-key"]},
            {"check": "size", "phases": ["call"], "action": "block", "max_bytes": 7},
            {
                "check": "http",
                "phases": ["call"],
                "action": "block",
                "hook": {"url": _HOSTS[0], "credential": "vendor1"},
            },
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The objects of one kind, and the members that none of them has with a value of its own."""

    kind: Declared
    objects: Sequence[Manifest]
    missing: AbstractSet[str]


@dataclass(slots=True)
class Generator:
    """The generator of one tenant's objects; those that others name are applied before them."""

    gateway: RunningGateway
    slug: str
    provider: str
    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The names of the objects so far, by kind."""

    async def run(self) -> Mapping[str, Generated]:
        """Generate and apply objects of every kind."""
        named = {mark.kind for kind in EVERY for mark in _names_in(kind.of)}
        found: dict[str, Generated] = {}
        for kind in sorted(EVERY, key=lambda one: one.name not in named):
            found[kind.name] = made = await self._generate(kind)
            for one in made.objects:  # those of a singleton follow one another
                answer = await send(self.gateway, [one], self.slug)
                assert answer.status_code == 200, answer.text
            self.names[kind.name] = [one["name"] for one in made.objects if "name" in one]
        return found

    async def _generate(self, kind: Declared) -> Generated:
        shapes = [kind.example, *_further(self.provider).get(kind.name, ())]
        objects = [made for number, shape in enumerate(shapes) if (made := await self._find(kind, shape, number, ""))]

        def is_missing(name: str) -> bool:
            return not any(has_own_value(kind, one, name) for one in objects)

        known = [one.name for one in settable(kind.of) if one.is_stored]
        stored = [name for name in known if (kind.name, name) not in UNREACHED]
        for name in filter(is_missing, stored):
            for shape in shapes:
                made = await self._find(kind, shape, len(shapes) + len(objects), name)
                if made is not None:
                    objects.append(made)
                    break
        return Generated(kind=kind, objects=objects, missing={*filter(is_missing, stored)})

    async def _find(self, kind: Declared, shape: Mapping[str, Any], number: int, wanted: str) -> Manifest | None:
        """An accepted object of this shape, with as many other members as go with it; if named, with this one."""
        members = {one.name: one for one in settable(kind.of) if one.is_stored}
        shape = {**shape, "operation": operation_of(number)} if kind is OVERRIDE else shape
        fixed = shape.keys() & members.keys() - {wanted}
        open_members = {name: one for name, one in members.items() if name == wanted or not _is_choice(one)}
        left = {name: list(self._choices(one)) for name, one in open_members.items()} | {n: [shape[n]] for n in fixed}
        neutral = _NEUTRAL.get(kind.name, {})
        left = {name: [one for one in values if one != neutral.get(name, ...)] for name, values in left.items()}
        left = {name: values for name, values in left.items() if values}
        key = _numbered(kind, number)
        for _ in range(_MOST_TRIES):
            sent = _manifest(kind, {name: values[0] for name, values in left.items()}, key)
            answer = await send(self.gateway, [sent], self.slug, dry_run=True)
            if answer.status_code == 200:
                return sent if not wanted or wanted in left else None
            faulty, is_superfluous = _faulty(answer.json(), left.keys() - fixed)
            for name in [each for each in faulty if each != wanted] or [wanted]:
                if name not in left:
                    return None
                del left[name][: len(left[name]) if is_superfluous else 1]
                if not left[name]:
                    del left[name]
        return None

    def _choices(self, member: Member) -> Iterator[Any]:
        """Values of a member that its model accepts, but for its default."""
        default = default_of(member)
        return islice((each for each in self._values(member.hint, member.marks) if each != default), 5)

    def _values(self, hint: Any, marks: Sequence[object]) -> Iterator[Any]:
        """Values of a type with these markers; one of each sort, and every choice."""
        accepts = TypeAdapter[Any](sent_type(hint, marks))
        return (each for each in self._candidates(hint, marks) if _is_accepted(accepts, each))

    def _candidates(self, hint: Any, marks: Sequence[object]) -> Iterator[Any]:
        bare, inner = split(without_none(split(hint)[0]))
        named = next((one for one in (*marks, *inner) if isinstance(one, Names)), None)
        element, entries = element_of(bare), entries_of(bare)
        if named is not None:
            names = self.names.get(named.kind, ())
            yield from names[1:] or names
        elif element is not None:
            yield from (_HOSTS, *([each] for each in self._values(element, ())))
        elif entries is not None:
            yield from ({"generated": each} for each in self._values(entries[1], ()))
        elif is_declared(bare):
            first = {one.name: next(self._choices(one), None) for one in settable(bare)}
            parts = {name: value for name, value in first.items() if value is not None}
            yield from (parts, *({name: value} for name, value in parts.items()))
        elif bare is Secret:
            yield SECRET
        elif get_origin(bare) is Literal:
            yield from get_args(bare)
        elif isinstance(bare, type) and issubclass(bare, StrEnum):
            yield from map(str, bare)
        else:
            yield from (True, False, *_NUMBERS, *_TEXTS)


async def generate_tenant(gateway: RunningGateway, upstream: RecordingUpstream, slug: str) -> Mapping[str, Generated]:
    """Create a tenant with generated objects of every kind, and an issuer that some of them name."""
    await tenant_for_manifests(gateway, slug)
    await gateway.import_document(slug, _DOCUMENT, name="pets")
    provider = LocalProvider(new_issuer(upstream))
    await add_provider(gateway, slug, provider)
    return await Generator(gateway, slug, provider.issuer.url).run()


def default_of(member: Member) -> Any:
    """The default of a member as JSON; None for a member that is required."""
    return None if member.default is REQUIRED else msgspec.json.decode(msgspec.json.encode(member.default))


def split_secrets(of: Any, members: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
    """The members without secrets, at any depth of declared classes, and the values of the secrets."""
    known, shown, secrets = {one.shown_name: one for one in settable(of)}, dict[str, Any](), list[Any]()
    for name, value in members.items():
        hint: Any = without_none(known[name].hint)
        if known[name].is_secret:
            secrets.append(value)
        elif is_declared(hint) and isinstance(value, dict):
            shown[name], more = split_secrets(hint, cast("Manifest", value))
            secrets += more
        else:
            shown[name] = value
    return shown, secrets


def has_own_value(kind: Declared, one: Manifest, name: str) -> bool:
    """True if an object has another value of a member than the default."""
    default = next(default_of(member) for member in settable(kind.of) if member.name == name)
    return name == key_member(kind) or one["members"].get(name, default) != default


def with_number(key: str, number: int) -> str:
    """A key of the same form; that of a template stays one."""
    return key.replace("{", f"{number}/{{", 1) if "{" in key else f"{key}{number}"


def _is_accepted(adapter: TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_json(msgspec.json.encode(value), strict=True)
    except ValidationError:
        return False
    return True


def _is_choice(member: Member) -> bool:
    """True for a member that decides which others belong to the object, such as the kind of a credential."""
    bare: Any = without_none(member.hint)
    return isinstance(bare, type) and issubclass(bare, StrEnum)


def _names_in(of: Any) -> Iterator[Names]:
    for one in members_of(of):
        found = one.mark(Names)
        if found is not None:
            yield found
        elif is_declared(inner := without_none(one.hint)):
            yield from _names_in(inner)


def _faulty(problem: Mapping[str, Any], names: AbstractSet[str]) -> tuple[Sequence[str], bool]:
    """The members that a refusal names, by pointers or in its text; true if they do not belong to the object."""
    pointers = [tokens_of(fault["pointer"]) for fault in problem.get("errors", ())]
    found = {str(tokens[3]) for tokens in pointers if len(tokens) > 3 and tokens[2] == "members"}
    detail: str = problem["detail"]
    if found & names:
        return sorted(found & names), "omit" in detail
    words = chain(re.findall(r"\w+", detail)[::-1], sorted(names, reverse=True))
    return [word for word in words if word in names][:1], True


def _numbered(kind: Declared, number: int) -> str:
    """The key of the example with a number."""
    if not isinstance(kind, Kind):
        return ""
    key = str(kind.example["name"]) if kind.keyed == "id" else kind.key_sent(kind.example)
    return key if number == 0 else with_number(key, number)


def _manifest(kind: Declared, members: Mapping[str, Any], key: str) -> Manifest:
    """The manifest of an object with these members and this key."""
    keyed = key_member(kind)
    if not isinstance(kind, Kind) or keyed is None:
        return {"kind": kind_in_manifests(kind.name), "members": dict(members)}
    placed = with_key(kind, members, key) if kind.key_in else dict(members)
    placed.pop(keyed, None)
    return {"kind": kind_in_manifests(kind.name), "name": key, "members": placed}
