"""Application of manifests to one tenant: checks before the transaction, then one transaction for all objects.

Each changed object has a revision and an audit entry of its own; one event follows the commit. An object that would not
change is not written. A dry run executes the same transaction and rolls it back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gateway.catalog.manifests.drafts import Draft, prepare_all, read_drafts
from gateway.catalog.manifests.limits import MAX_FAULTS, MAX_PREPARE_SECONDS, MAX_SECONDS, within
from gateway.catalog.manifests.manifest import (
    AppliedObject,
    AppliedSet,
    ManifestAction,
    ManifestSet,
    ReferredObject,
    check_terms,
    locate,
    words_of,
)
from gateway.catalog.manifests.order import Node, sort_by_references
from gateway.catalog.manifests.owners import Owners
from gateway.catalog.manifests.pruning import prune
from gateway.catalog.manifests.targets import TARGETS
from gateway.catalog.manifests.value_changes import ChangeBudget, ValueChange, secrets_of
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges, open_changes
from gateway.domain.audit import RuleKind
from gateway.domain.identifiers import TenantId
from gateway.domain.json_access import point
from gateway.domain.tenancy.ownership import Ownership
from gateway.domain.tenancy.principals import Principal
from gateway.errors import DecidingRule, Fault, Forbidden, GatewayError, PreconditionFailed
from gateway.kinds.manifests import kind_in_manifests
from gateway.store.kinds import ownership


class _RolledBack(Exception):
    """Ends the transaction of a dry run."""


async def apply_manifests(tenant: TenantId, catalog: CatalogContext, given: ManifestSet, *, by: Author) -> AppliedSet:
    """Make the tenant's objects those of the manifests, all or none of them.

    Raises:
        InvalidBody: an object or a term is invalid; the faults have the places.
        Conflict: a set may not take over an object or remove as many, or objects name each other in a cycle.
        PreconditionFailed: an expected version is not the current one; the faults name the objects.
        LimitExceeded: the application takes too long.
        GatewayError: the kind of an object refused it, as a request for that object alone would be.
    """
    check_terms(given)
    with within(MAX_PREPARE_SECONDS, "checks before the transaction"):
        async with catalog.store.transaction(tenant) as db:
            drafts = await read_drafts(tenant, db, given)
        given = replace(given, wanted=await prepare_all(tenant, catalog, drafts, by))
    return await _apply(tenant, catalog, given, by)


async def _apply(tenant: TenantId, catalog: CatalogContext, given: ManifestSet, by: Author) -> AppliedSet:
    result: AppliedSet | None = None
    try:
        async with open_changes(tenant, catalog, by=by) as opened:
            named = {} if given.owner is None else {"set": given.owner.name}
            opened.owner, opened.origin = given.owner, {**given.origin, **named}
            # Neither the commit nor what follows it: a refusal of a stored change would lose generated secrets.
            with within(MAX_SECONDS, "transaction"):
                await opened.lock()
                result = await _write_all(opened, given)
            if given.is_dry_run:
                raise _RolledBack
    except _RolledBack:
        assert result is not None  # the exception follows the assignment
        objects = [
            replace(one, secret=None, id=None if one.action is ManifestAction.CREATE else one.id)
            for one in result.objects
        ]
        return replace(result, objects=objects)
    return replace(result, references=())


async def _write_all(opened: OpenChanges, given: ManifestSet) -> AppliedSet:
    drafts = await read_drafts(opened.tenant, opened.db, given, is_locked=True)
    await _check_expected(opened, given, drafts)
    found = await _read_owners(opened, given, drafts)
    owners = Owners(opened.catalog, given, found)
    owners.refuse_foreign([(draft.place, draft.wanted, draft.before) for draft in drafts])
    drafts = await owners.keep_secrets(drafts)
    references = await _find_references(opened, drafts) if given.is_dry_run else ()
    nodes = [
        Node(
            address=one.wanted.address,
            rank=one.wanted.target.rank,
            refers=one.refers,
            exists=one.before is not None,
        )
        for one in drafts
    ]
    shown = ChangeBudget()
    tags = [await _tag_of(opened, one) for one in drafts]  # before the first write: a tag can depend on other objects
    done: dict[int, AppliedObject] = {}
    for place in sort_by_references(nodes):
        done[place] = await _write(opened, owners, drafts[place], tags[place], shown=shown)
    deleted = await prune(opened, given, owners, drafts, shown=shown) if given.prune else ()
    objects = [*(done[place] for place in range(len(drafts))), *deleted]
    return AppliedSet(revision=opened.revision, objects=objects, references=references)


async def _read_owners(opened: OpenChanges, given: ManifestSet, drafts: Sequence[Draft]) -> Sequence[Ownership]:
    if given.owner is None:
        return ()
    ids = [(one.wanted.target.name, one.wanted.target.id_of(one.before)) for one in drafts if one.before is not None]
    return await ownership.find(opened.tenant, opened.db, given.owner, ids)


async def _tag_of(opened: OpenChanges, draft: Draft) -> str | None:
    before = draft.before
    return None if before is None else await draft.wanted.target.tag(opened.tenant, opened.db, before)


async def _write(
    opened: OpenChanges, owners: Owners, draft: Draft, tag: str | None, *, shown: ChangeBudget
) -> AppliedObject:
    target, before = draft.wanted.target, draft.before
    has_drifted = owners.has_drifted(target, before)
    secrets = secrets_of(draft.composed)
    try:
        after = await draft.write(opened)
        is_written = before is None or after.version != before.version
        is_adopted = await owners.own(opened, target, after, secrets=secrets, is_written=is_written)
    except GatewayError as error:
        raise locate(error, draft.place, draft.wanted) from error.__cause__
    if before is None:
        action = ManifestAction.CREATE
    elif draft.former_key is not None:
        action = ManifestAction.RENAME
    elif is_written:
        action = ManifestAction.UPDATE
    else:
        action = ManifestAction.ADOPT if is_adopted else ManifestAction.NONE
    return AppliedObject(
        kind=target.name,
        key=draft.wanted.key,
        id=target.id_of(after),
        action=action,
        tag=tag,
        has_drifted=has_drifted,
        changes=[*shown.find_changes(before, after, target.members), *_of_secrets(secrets)],
        secret=opened.generated.get(target.id_of(after)),
    )


def _of_secrets(written: Iterable[str]) -> Sequence[ValueChange]:
    return [ValueChange(pointer=point(name), is_secret=True) for name in written]


async def _check_expected(opened: OpenChanges, given: ManifestSet, drafts: Sequence[Draft]) -> None:
    """Compare versions. A caller whose role is limited to some kinds learns those of objects that its own ones name."""
    faults: list[Fault] = []
    referred, caller = {each for one in drafts for each in one.refers}, opened.by.caller
    for place, expected in enumerate(given.expected):
        is_own = not isinstance(caller, Principal) or caller.may_apply(kind_in_manifests(expected.target.name))
        if not is_own and (expected.target.name, expected.key) not in referred:  # guard: role-kinds-expected
            reason = "is of a kind to which the role of this person is not limited, and no object names it"
            fault = Fault(pointer=f"/expected/{place}", reason=reason)
            raise Forbidden(f"an expected object {reason}", faults=[fault], rule=DecidingRule(RuleKind.SCOPE))
        found = await expected.target.read(opened.tenant, opened.db, expected.key)
        tag = None if found is None else await expected.target.tag(opened.tenant, opened.db, found)
        if tag != expected.tag:
            state = "was removed" if tag is None else ("was created" if expected.tag is None else "has changed")
            words = words_of((expected.target.name, expected.key))
            faults.append(Fault(pointer=f"/expected/{place}", reason=f"the {words} {state}"))
    if faults:  # guard: plan-is-current
        raise PreconditionFailed(f"{faults[0].reason} since the plan; plan again", faults=faults[:MAX_FAULTS])


async def _find_references(opened: OpenChanges, drafts: Sequence[Draft]) -> Sequence[ReferredObject]:
    """The objects that the wanted ones name and the manifests do not have, so that a plan can expect their versions."""
    named = {one.wanted.address for one in drafts}
    found: list[ReferredObject] = []
    for kind, key in sorted({each for one in drafts for each in one.refers} - named):
        target = TARGETS.get(kind)
        if target is not None:
            one = await target.read(opened.tenant, opened.db, key)
            tag = None if one is None else await target.tag(opened.tenant, opened.db, one)
            found.append(ReferredObject(kind=kind, key=key, tag=tag))
    return found
