"""Kept secrets of every kind: no change of a member that names a receiver keeps the secret, whatever the verb."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeGuard

import pytest

from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.secret_collection import SecretCollection
from gateway.catalog.kinds.index import COLLECTIONS
from gateway.catalog.transaction import Author
from gateway.domain.credentials import CredentialStatus
from gateway.domain.members.markers import Shape
from gateway.domain.members.secret import Secret
from gateway.domain.refusals import SecretNotKept
from gateway.domain.tenancy.principals import Operator
from gateway.errors import Conflict
from gateway.kinds.index import KINDS
from gateway.kinds.members import Member, is_declared, members_of, settable, without_none
from tests.integration.catalog.conftest import Changes
from tests.support.credentials import make_credential

BY = Author(caller=Operator(), correlation_id="test")
EVIL = "https://evil.example"


def is_secret(one: Collection[Any]) -> TypeGuard[SecretCollection[Any, Any]]:
    """True for a collection of objects with secrets."""
    return isinstance(one, SecretCollection)


WITH_SECRET: Sequence[SecretCollection[Any, Any]] = [one for one in COLLECTIONS if is_secret(one)]
BASES = {
    "credential": make_credential(
        kind="user", place="header", field="X-Key", client_id="gateway", value="s3cr3t", server="https://login.example"
    )
}
"""An object of each kind with a secret, of which every member can differ."""


def _receivers(of: Any, path: str = "") -> Iterator[tuple[str, Member]]:
    """Yield the members that name a receiver, those of the status among them."""
    for one in members_of(of):
        if Shape.RECEIVER in one.marks:
            yield f"{path}{one.name}", one
        elif is_declared(hint := without_none(one.hint)):
            yield from _receivers(hint, f"{path}{one.name}/")


def _other(value: Any, member: Member) -> Any:
    """Another value of a member, of its form."""
    hint = without_none(member.hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return next(each for each in hint if each not in {value, "basic"})
    if member.name == "field":
        return "X-Echoed"
    return (*value, EVIL) if isinstance(value, tuple) else EVIL


def _moved(one: Any, path: str, member: Member) -> Any:
    head, _, rest = path.partition("/")
    value = getattr(one, head)
    return replace(one, **{head: _moved(value, rest, member) if rest else _other(value, member)})


CASES = [
    (each, path, member, verb)
    for each in WITH_SECRET
    for path, member in _receivers(each.kind.of)
    for verb in ("set", "change")
    if verb == "change" or not path.startswith("status/")  # no body has a status
]


def test_every_kind_with_a_secret_has_the_rule() -> None:
    """Ours: a kind whose members have a secret has the engine that keeps it, an example here, and receivers (TEN-4)."""
    with_secret = {kind.name for kind in KINDS if any(one.is_secret for one in settable(kind.of))}
    assert {one.kind.name for one in WITH_SECRET} == with_secret == BASES.keys()
    paths = {path for each, path, *_ in CASES if each.kind.name == "credential"}
    assert paths >= {"kind", "place", "field", "origins", "issuer", "client_id", "server", "status/token_url"}


@pytest.mark.parametrize(
    ("collection", "path", "member", "verb"), CASES, ids=[f"{each[1]}-{each[3]}" for each in CASES]
)
async def test_a_secret_is_not_kept_for_another_receiver(
    changes: Changes, collection: SecretCollection[Any, Any], path: str, member: Member, verb: str
) -> None:
    """Ours: PUT and PATCH without the secret are refused with the member; with the secret they are done (TEN-4)."""
    engine, base = replace(collection, prepare=None), BASES[collection.kind.name]  # no metadata is read
    tenant, catalog = changes.tenant.id, changes.catalog
    made = await engine.create(tenant, catalog, base, by=BY)

    async def write(**secret: Any) -> Any:
        def compose(current: Any) -> Any:
            return replace(_moved(current, path, member), **secret)

        if verb == "change":
            return await engine.change(tenant, catalog, made.id, compose, by=BY)
        done, _, _ = await engine.set(tenant, catalog, made.id, compose, by=BY)
        return done

    with pytest.raises(SecretNotKept) as refused:
        await write()
    assert f"/{path}" in [fault.pointer for fault in refused.value.faults]
    assert await engine.get(tenant, catalog, made.id) == made
    async with catalog.store.transaction(tenant) as db:
        opened = await engine.sealed.open(tenant, db, catalog.sealer, made.id)
    assert opened is not None
    assert opened[1].value == "s3cr3t"
    moved = await write(value=Secret("known"))
    assert moved.version == made.version + 1


async def test_a_part_of_a_secret_is_not_kept_for_another_receiver(changes: Changes) -> None:
    """Ours: a password that is sent takes no stored user name to another origin, nor the reverse (TEN-4)."""
    [engine] = [one for one in WITH_SECRET if one.kind.name == "credential"]
    tenant, catalog = changes.tenant.id, changes.catalog
    login = make_credential("login", place="basic", username="ada", password="p")
    await engine.create(tenant, catalog, login, by=BY)
    for part in ("username", "password"):

        def revise(one: Any, part: str = part) -> Any:
            return replace(one, origins=(EVIL,), **{part: Secret("x")})

        with pytest.raises(SecretNotKept):
            await engine.change(tenant, catalog, "login", revise, by=BY)
    whole = {"username": Secret("x"), "password": Secret("y")}
    await engine.change(tenant, catalog, "login", lambda one: replace(one, origins=(EVIL,), **whole), by=BY)


async def test_a_change_that_another_one_overtakes_is_refused(changes: Changes) -> None:
    """Ours: endpoints that were read for one object are not stored with what a change made of it meanwhile (TEN-4)."""
    [engine] = [one for one in WITH_SECRET if one.kind.name == "credential"]
    tenant, catalog = changes.tenant.id, changes.catalog
    await engine.create(tenant, catalog, make_credential(value="s3cr3t"), by=BY)

    async def prepare(_: object, __: object, wanted: Any, ___: object) -> Any:
        moved = replace(engine, prepare=None)
        whole = {"origins": (EVIL,), "value": Secret("y")}
        await moved.change(tenant, catalog, "token", lambda one: replace(one, **whole), by=BY)
        return replace(wanted, status=CredentialStatus())

    slow = replace(engine, prepare=prepare)
    with pytest.raises(Conflict):
        await slow.change(tenant, catalog, "token", lambda one: replace(one, value=Secret("x")), by=BY)
    assert (await engine.get(tenant, catalog, "token")).version == 2
