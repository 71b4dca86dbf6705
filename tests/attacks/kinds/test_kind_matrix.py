"""Every kind, every member, every principal, every verb: rights and effects follow from the declaration alone.

The objects are generated (`tests/support/generated_objects.py`), so a new kind or member needs no change here.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.domain.members.markers import Setter
from gateway.domain.tenancy.keys import Scope
from gateway.kinds.identity import MANAGED_ISSUER
from gateway.kinds.index import OPERATORS_KINDS
from gateway.kinds.kind import TIMES, Kind
from gateway.kinds.manifests import Declared
from gateway.kinds.members import STATUS, Member, keeps, members_of, settable, status_of
from gateway.kinds.singleton import Singleton
from gateway.kinds.singletons import CEILINGS, POLICY
from gateway.web.kinds.models import models_of
from tests.support.generated_objects import (
    EVERY,
    SECRET,
    default_of,
    has_own_value,
    split_secrets,
)
from tests.support.kind_world import (
    ANONYMOUS,
    AUDITOR,
    CREATOR,
    FINANCE,
    FOREIGN,
    OF_OTHER,
    OF_PROFILES,
    OPERATOR,
    OPERATORS,
    PRINCIPALS,
    SLUG,
    SUPPORT,
    World,
    body_of,
    item_path,
    list_path,
    operators_object,
    renumbered,
)
from tests.support.manifests import Manifest, contains

_READS = frozenset({"get", "list"})
_UNAUTHENTICATED, _FORBIDDEN, _MISSING = 401, 403, 404
each_kind = pytest.mark.parametrize("kind", [*EVERY, *OPERATORS_KINDS], ids=lambda one: one.name)
each_kind_of_tenants = pytest.mark.parametrize("kind", EVERY, ids=lambda one: one.name)


def _is_changeable(kind: Declared) -> bool:
    return isinstance(kind, Singleton) or bool(models_of(kind).change.model_fields)


def _wanted_status(kind: Declared, principal: str, verb: str) -> int:
    """The status of a refusal that follows from the declaration; 0 if the principal may use the verb."""
    if principal == OPERATOR:
        return 0
    if principal == ANONYMOUS:
        return _UNAUTHENTICATED
    if principal in OPERATORS:
        return _wanted_of_operator(kind, principal, verb)
    is_operators, is_tenants = isinstance(kind, Kind) and kind.is_operators, isinstance(kind, Kind) and kind.is_tenants
    if principal == FOREIGN:
        is_outside = is_operators and (not is_tenants or verb in {"list", "create"})
        return _FORBIDDEN if is_outside else _MISSING
    scopes = kind.readers if isinstance(kind, Singleton) and verb == "get" else kind.writers
    if verb == "get" and is_tenants:
        scopes = frozenset({Scope.ADMIN})  # a tenant's admin sees its own tenant
    if verb == "list" and isinstance(kind, Kind) and not is_operators and not kind.writers:
        scopes = frozenset({Scope.ADMIN})
    # The path needs the scope, whatever the kind; the generated ceilings leave issuers to the operator.
    is_apply = verb == "apply" and (principal != Scope.ADMIN or kind is MANAGED_ISSUER)
    return _FORBIDDEN if principal not in scopes or is_apply else 0


def _wanted_of_operator(kind: Declared, principal: str, verb: str) -> int:
    """The status of a refusal that follows from the role of an operator; the matrix has the tenant `acme`."""
    is_tenants = isinstance(kind, Kind) and kind.is_tenants
    is_installations = isinstance(kind, Kind) and kind.is_operators and not is_tenants
    if is_tenants and verb == "list":
        return 0
    if is_installations:
        return 0 if verb in _READS and principal in {SUPPORT, AUDITOR} else _FORBIDDEN
    if is_tenants and verb == "create":
        return 0 if principal == CREATOR else _FORBIDDEN
    if principal in {CREATOR, OF_OTHER}:
        return _MISSING
    if principal == SUPPORT:
        return 0 if verb in _READS else _FORBIDDEN
    if principal == AUDITOR:
        return 0 if verb == "get" and (is_tenants or _is_of_trail(kind)) else _FORBIDDEN
    if principal == FINANCE:
        return 0 if verb == "get" and (is_tenants or kind in {CEILINGS, POLICY}) else _FORBIDDEN
    if principal == OF_PROFILES:
        return 0 if verb == "apply" and kind.name == "profile" else _FORBIDDEN
    # The generated ceilings leave issuers to the operator.
    is_applied = verb == "apply" and kind is not MANAGED_ISSUER
    is_written = Scope.ADMIN in kind.writers and (is_applied or verb != "apply")
    return 0 if verb in _READS or is_written else _FORBIDDEN


def _is_of_trail(kind: Declared) -> bool:
    return isinstance(kind, Singleton) and Scope.AUDIT in kind.readers


def _requests(kind: Declared, item: str, one: Manifest) -> Iterator[tuple[str, str, str, object]]:
    """Each verb of a kind: its name, method, path and body. Those that change nothing come first."""
    body, path = body_of(kind, one), list_path(kind)
    yield "get", "GET", item, None
    if isinstance(kind, Kind):
        yield "list", "GET", path, None
    if not isinstance(kind, Kind) or not kind.is_operators:
        yield "apply", "POST", f"/tenants/{SLUG}/apply", {"objects": [one], "dry_run": True}
    if isinstance(kind, Kind):
        yield "create", "POST", path, body
        yield from [("rotate", "POST", f"{item}/rotate", None)] if kind.generates else ()
    if _is_changeable(kind):
        yield "update", "PATCH", item, dict(kind.changed_example)
    yield "set", "PUT", f"{item}?replace=true" if keeps(kind.of) else item, body
    if isinstance(kind, Kind):
        yield "delete", "DELETE", item, None


async def test_every_member_is_generated(world: World) -> None:
    """Ours: a member without a generated value fails here until `tests/support/generated_objects.py` has one."""
    missing = {(one.kind.name, name) for one in world.generated.values() for name in one.missing}
    assert missing == set()


@each_kind
async def test_principals_use_the_verbs_of_the_declaration(world: World, kind: Declared) -> None:
    """Ours: the permitted callers of a verb follow from the writers and readers of its kind; a refusal changes nothing
    (TEN-2).
    """
    one = operators_object(kind) if isinstance(kind, Kind) and kind.is_operators else world.manifests(kind)[-1]
    item = await item_path(world, kind, one)
    before, trail = (await world.gateway.admin.get(item)).text, await world.trail()
    for principal in PRINCIPALS[1:]:
        for verb, method, path, body in _requests(kind, item, one):
            wanted = _wanted_status(kind, principal, verb)
            if wanted or verb in {"get", "list", "apply"}:
                answer = await world.ask(principal, method, path, body)
                assert answer.status_code == (wanted or 200), (principal, verb, answer.text)
                assert not wanted or SECRET not in answer.text
    assert ((await world.gateway.admin.get(item)).text, await world.trail()) == (before, trail)


@each_kind_of_tenants
async def test_members_are_those_of_the_declaration(world: World, kind: Declared) -> None:
    """Ours: create, set and apply store each declared member; GET returns them all, PUT takes them back (ADM-1)."""
    is_admins = Scope.ADMIN in kind.writers and kind is not MANAGED_ISSUER  # see `_wanted_status`
    principal = Scope.ADMIN if is_admins else OPERATOR  # the operator makes all other requests
    for number, one in enumerate(world.manifests(kind)):
        new = one if isinstance(kind, Singleton) else renumbered(kind, one, 80 + number)
        method = "PUT" if isinstance(kind, Singleton) else "POST"
        permission = "?replace=true" if isinstance(kind, Singleton) and keeps(kind.of) else ""
        made = await world.ask(principal, method, f"{list_path(kind)}{permission}", body_of(kind, new))
        assert made.is_success, made.text
        item = await item_path(world, kind, new)
        shown = await world.ask(principal, "GET", item)
        given, hidden = split_secrets(kind.of, new["members"])
        assert {name: value for name, value in given.items() if not contains(shown.json().get(name), value)} == {}
        assert set(shown.json()) == _shown_members(kind)
        again = await world.ask(principal, "PUT", item, shown.json())
        assert (again.status_code, again.headers.get("etag")) == (200, shown.headers["etag"]), again.text
        same = await world.apply(principal, [{**new, "members": given}])
        assert [each["action"] for each in same.json()["objects"]] == ["none"], same.text
        assert [each.text for each in (shown, again, same) if any(value in each.text for value in hidden)] == []
        if isinstance(kind, Kind):
            assert (await world.ask(principal, "DELETE", item)).status_code == 204
    listed = await world.ask(principal, "GET", list_path(kind))
    assert SECRET not in listed.text


def _shown_members(kind: Declared) -> set[str]:
    """The members of a response that follow from the declaration."""
    names = {one.name for one in settable(kind.of) if one.is_stored and not one.is_secret}
    status = kind.status or status_of(kind.of)
    has_status = status is not None and any(one.about for one in members_of(status))
    names |= {STATUS} if has_status else set()
    if isinstance(kind, Kind):
        names |= {
            "id",
            *kind.flat_status,
            *(TIMES & kind.of.__dataclass_fields__.keys()),
            *({kind.keyed} if kind.shows_key else ()),
        }
    return names


@each_kind_of_tenants
async def test_each_member_is_changed_by_its_setters(world: World, kind: Declared) -> None:
    """Ours: PATCH changes each member that admins set at any time, and no other; a refusal changes nothing (ADM-1)."""
    if not _is_changeable(kind):
        return
    for member in settable(kind.of):
        one = next((each for each in world.manifests(kind) if has_own_value(kind, each, member.name)), None)
        if one is None:
            continue
        item, value = await item_path(world, kind, one), body_of(kind, one)[member.name]
        if isinstance(kind, Singleton):  # its generated objects follow one another
            assert (await world.apply(OPERATOR, [one])).is_success
        before = await world.gateway.admin.get(item)
        if member.setter in {Setter.CREATION, Setter.ONCE}:
            await _refused_after_creation(world, item, member, value)
            continue
        reset = await world.gateway.admin.patch(item, json={member.name: default_of(member)})
        if reset.is_success and not member.is_secret:
            assert reset.json()[member.name] != before.json()[member.name], member.name
        restored = await world.gateway.admin.patch(item, json={member.name: value})
        assert restored.status_code == 200, (member.name, restored.text)
        if not member.is_secret:
            assert restored.json()[member.name] == before.json()[member.name]
        else:
            assert str(value) not in reset.text + restored.text
    await _set_by_the_gateway(world, kind)


async def _refused_after_creation(world: World, item: str, member: Member, value: Any) -> None:
    """A member of a creation: PATCH does not know it, and PUT takes its stored value only."""
    stored = await world.gateway.admin.get(item)
    other = (not value) if isinstance(value, bool) else f"{value}0"
    for method, body in (("PATCH", {member.name: value}), ("PUT", {**stored.json(), member.name: other})):
        refused = await world.gateway.admin.request(method, item, json=body)
        assert refused.status_code == 400, refused.text
        assert [fault["pointer"] for fault in refused.json()["errors"]] == [f"/{member.name}"]


async def _set_by_the_gateway(world: World, kind: Declared) -> None:
    """Members of the gateway, shown or not, are unknown to POST, PATCH and manifests, and ignored by PUT if shown."""
    one = world.manifests(kind)[-1]
    item = await item_path(world, kind, one)
    stored = await world.gateway.admin.get(item)
    own = {each.name for each in settable(kind.of)} | ({kind.keyed, "name"} if isinstance(kind, Kind) else set[str]())
    foreign = {each.name: "planted" for each in members_of(kind.of) if each.name not in own} | {"unknown": 1}
    pointers = {f"/{name}" for name in foreign}
    for method, path in [("PATCH", item), *([("POST", list_path(kind))] if isinstance(kind, Kind) else [])]:
        refused = await world.gateway.admin.request(method, path, json={**body_of(kind, one), **foreign})
        assert refused.status_code == 400, (method, refused.text)
        assert {fault["pointer"] for fault in refused.json()["errors"]} >= pointers, method
    planted = {**one, "members": {**one["members"], **foreign}}
    refused = await world.apply(OPERATOR, [planted])
    assert refused.status_code == 400
    assert {fault["pointer"] for fault in refused.json()["errors"]} >= {
        f"/objects/0/members{each}" for each in pointers
    }
    ignored = dict.fromkeys((STATUS, "version", "created_at", "updated_at"), "planted")
    same = await world.gateway.admin.put(item, json={**stored.json(), **ignored})
    assert (same.status_code, same.headers.get("etag")) == (200, stored.headers["etag"]), same.text
    if isinstance(kind, Kind):
        other = await world.gateway.admin.put(item, json={**stored.json(), "id": f"{kind.id_prefix}_{'0' * 20}"})
        assert (other.status_code, other.json()["errors"][0]["pointer"]) == (400, "/id")
    assert (await world.gateway.admin.get(item)).headers["etag"] == stored.headers["etag"]
