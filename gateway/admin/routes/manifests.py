"""The endpoint that applies manifests to a tenant."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic_core import to_json

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import SMALL_BODY, AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.requests.issuers import refuse_null_conditions
from gateway.admin.requests.manifests import ManifestSetSent, ObjectSent
from gateway.admin.responses.manifests import AppliedSetShown
from gateway.admin.validation import validate
from gateway.catalog.kinds.engines.special_functions import Compose
from gateway.catalog.manifests.apply import apply_manifests
from gateway.catalog.manifests.issuer_target import IssuerTarget
from gateway.catalog.manifests.limits import BYTES_PER_TOKEN, MAX_BODY_BYTES, MAX_FAULTS
from gateway.catalog.manifests.manifest import ExpectedTag, ManifestSet, Move, Wanted
from gateway.catalog.manifests.source_target import SourceTarget
from gateway.catalog.manifests.targets import TARGETS, SingletonTarget, Target
from gateway.catalog.transaction import CatalogOptions
from gateway.domain.audit import OPERATOR_RULE, RuleKind
from gateway.domain.json_access import point
from gateway.domain.tenancy.ownership import OwningSet
from gateway.domain.tenancy.principals import Caller, Operator
from gateway.errors import DecidingRule, Fault, Forbidden, InvalidBody
from gateway.identity.permissions import EVERY_KIND, require
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import MANIFEST_KINDS, below_object, key_member, kind_in_manifests
from gateway.kinds.members import settable
from gateway.kinds.singleton import Singleton
from gateway.web.kinds.annotations import merged
from gateway.web.kinds.manifests import manifest_model
from gateway.web.kinds.models import models_of
from gateway.web.kinds.singleton_models import singleton_models_of
from gateway.web.models import BodyModel, NoQuery


async def apply(admin: AdminDependencies, call: AdminRequest[ManifestSetSent, NoQuery]) -> AdminResponse:
    """Make the tenant's objects those of manifests, in one transaction, and show what changes."""
    body = call.body
    origin = {"commit": body.commit, "author": body.author}
    wanted = await read_objects(body.objects, call.by.caller, admin.catalog.options)
    given = ManifestSet(
        wanted=wanted,
        owner=None if body.set is None else OwningSet(body.set, isinstance(call.by.caller, Operator)),
        adopt=body.adopt,
        prune=body.prune,
        prune_protected=body.prune_protected,
        max_deletions=body.max_deletions,
        moved=[
            Move(target=_target(one.kind, f"/moved/{place}/kind"), source=one.former, to=one.to)
            for place, one in enumerate(body.moved)
        ],
        expected=[
            ExpectedTag(target=_target(one.kind, f"/expected/{place}/kind"), key=one.name or "", tag=one.etag)
            for place, one in enumerate(body.expected)
        ],
        origin={name: text for name, text in origin.items() if text is not None},
        is_dry_run=body.dry_run,
    )
    done = await apply_manifests(call.tenant, admin.catalog, given, by=call.by)
    return AdminResponse(content=AppliedSetShown.of(done))


async def read_objects(objects: Sequence[ObjectSent], caller: Caller, options: CatalogOptions) -> Sequence[Wanted]:
    """Validate the objects.

    Raises:
        InvalidBody: some are invalid; the faults have their places.
        Forbidden: the caller may not set objects of a kind.
    """
    wanted: list[Wanted] = []
    faults: list[Fault] = []
    for place, one in enumerate(objects):
        try:
            wanted.append(_read(one, caller, options))
        except InvalidBody as error:
            faults += [replace(fault, pointer=f"/objects/{place}{fault.pointer}") for fault in error.faults]
        if len(faults) >= MAX_FAULTS:
            break
        await checkpoint()  # guard: manifest-validation-in-steps
    if faults:
        message = f"the body at {faults[0].pointer}: {faults[0].reason}"
        raise InvalidBody(message, faults=faults[:MAX_FAULTS])
    return wanted


def _read(sent: ObjectSent, caller: Caller, options: CatalogOptions) -> Wanted:
    target = _target(sent.kind, "/kind")
    _admit(caller, target.kind)
    keyed = key_member(target.kind)
    if (keyed is None) != (sent.name is None):
        reason = "required" if sent.name is None else "must be absent: a tenant has one such object"
        raise InvalidBody(f"/name: {reason}", faults=[Fault(pointer="/name", reason=reason)])
    if keyed is not None and keyed in sent.members:
        reason = "must be the `name` of the object instead"
        raise InvalidBody(f"/members/{keyed}: {reason}", faults=[Fault(pointer=f"/members/{keyed}", reason=reason)])
    key = sent.name or ""
    if len(to_json(sent.members)) > SMALL_BODY:  # guard: manifest-object-bytes
        reason = f"has more than {SMALL_BODY // 1024} KiB, the limit of a request for one object"
        raise InvalidBody(f"/members: {reason}", faults=[Fault(pointer="/members", reason=reason)])
    try:
        body = validate({**sent.members, **({keyed: key} if keyed else {})}, manifest_model(target.kind))
        if isinstance(target, IssuerTarget):
            refuse_null_conditions(getattr(body, "rules", ()))
    except InvalidBody as error:
        error.faults = tuple(replace(fault, pointer=below_object(target.kind, fault.pointer)) for fault in error.faults)
        raise
    _refuse_other_key(target.kind, body, key)
    if isinstance(target, SingletonTarget):
        return Wanted(target=target, key=key, compose=_compose_singleton(target, body, options))
    if isinstance(target, SourceTarget | IssuerTarget):
        values = {one.name: merged(None, getattr(body, one.name), one.hint) for one in settable(target.kind.of)}
        return Wanted(target=target, key=key, compose=partial(target.compose, key, values))
    return Wanted(target=target, key=key, compose=partial(models_of(target.kind).compose, body, key))


def _refuse_other_key(kind: Kind[Any] | Singleton[Any], body: BodyModel, key: str) -> None:
    """Refuse an object whose key, as a part of a member, is not its name.

    Raises:
        InvalidBody: it has another one.
    """
    if isinstance(kind, Kind) and kind.key_in and kind.key_sent(body.sent()) != key:
        pointer, reason = point("members", *kind.key_in), "must equal the name of the object"
        raise InvalidBody(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])


def _compose_singleton(target: SingletonTarget, body: BodyModel, options: CatalogOptions) -> Compose[Any]:
    initial = target.single.initial(target.kind.of, options)
    models = singleton_models_of(target.kind)

    def compose(current: Any) -> Any:
        return models.compose(body, current, initial, may_remove=True)

    return compose


def _target(name: object, pointer: str) -> Target:
    """The target of a kind.

    Raises:
        InvalidBody: there is no such kind.
    """
    kind = MANIFEST_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        reason = f"must be one of {', '.join(MANIFEST_KINDS)}"
        raise InvalidBody(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])
    return TARGETS[kind.name]


def _admit(caller: Caller, kind: Kind[Any] | Singleton[Any]) -> None:
    """Refuse a caller that could not set an object of this kind by a request for it alone.

    Raises:
        Forbidden: the key has none of the scopes, a role is limited to other kinds, or only the operator may do it.
    """
    scopes = kind.writers
    if isinstance(caller, Operator):
        return
    if not scopes:  # guard: manifest-operator-kinds
        raise Forbidden(f"only the operator may set {kind.words}", rule=OPERATOR_RULE)
    require(caller, caller.tenant, min(scopes & caller.scopes or scopes))
    if not caller.may_apply(kind_in_manifests(kind.name)):  # guard: role-kinds-applied
        rule = DecidingRule(RuleKind.SCOPE, kind.name)
        raise Forbidden(f"the role of this person is limited to manifests of other kinds than {kind.words}", rule=rule)


ENDPOINTS = (
    endpoint(
        "POST",
        "/tenants/{t}/apply",
        apply,
        ManifestSetSent,
        query=NoQuery,
        responses={200: AppliedSetShown},
        called="apply_manifests",
        problems={404, 409, 412, 422, 429},
        limit=MAX_BODY_BYTES,
        applied_kind=EVERY_KIND,
        bytes_per_token=BYTES_PER_TOKEN,  # guard: manifest-cost-of-objects
        work=WorkKind.OUTBOUND,
    ),
)
