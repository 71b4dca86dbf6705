"""Pruning: the removal of objects that a set owns and its manifests no longer name."""

from collections.abc import Sequence
from typing import Any

from gateway.catalog.manifests.drafts import Draft
from gateway.catalog.manifests.limits import MAX_FAULTS
from gateway.catalog.manifests.manifest import AppliedObject, ManifestAction, ManifestSet, locate_at, words_of
from gateway.catalog.manifests.order import Node, sort_by_references
from gateway.catalog.manifests.owners import Owners
from gateway.catalog.manifests.targets import NamedTarget
from gateway.catalog.manifests.value_changes import ChangeBudget
from gateway.catalog.transaction import OpenChanges
from gateway.domain.audit import RuleKind
from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import Conflict, DecidingRule, Fault, Forbidden, GatewayError
from gateway.kinds.manifests import kind_in_manifests


async def prune(
    opened: OpenChanges, given: ManifestSet, owners: Owners, drafts: Sequence[Draft], *, shown: ChangeBudget
) -> Sequence[AppliedObject]:
    """Remove what the set owns and does not name: objects that name others first. `shown` bounds the changes.

    Raises:
        Conflict: it would remove more than permitted, or a protected object; the faults name the objects.
    """
    named = {(one.wanted.target.name, one.wanted.target.id_of(one.before)) for one in drafts if one.before is not None}
    unnamed = await owners.unnamed(opened, named)
    refuse_removals(given, unnamed, opened.by.caller)
    nodes = [
        Node(address=(target.name, target.key_of(one)), rank=target.rank, refers=target.refers(one), exists=True)
        for target, one in unnamed
    ]
    removed: list[AppliedObject] = []
    for place in reversed(sort_by_references(nodes)):
        target, one = unnamed[place]
        try:
            await target.remove(opened, one)
        except GatewayError as error:
            words = words_of((target.name, target.key_of(one)))
            raise locate_at(error, "/prune", words, below=lambda _: "") from error.__cause__
        removed.append(
            AppliedObject(
                kind=target.name,
                key=target.key_of(one),
                id=target.id_of(one),
                action=ManifestAction.DELETE,
                tag=await target.tag(opened.tenant, opened.db, one),
                has_drifted=owners.has_drifted(target, one),
                changes=shown.find_changes(one, None, target.members),
            )
        )
    return removed


def refuse_removals(given: ManifestSet, unnamed: Sequence[tuple[NamedTarget, Any]], caller: Caller) -> None:
    """Refuse to remove more objects than permitted, or a protected one without the permission.

    Raises:
        Conflict: the faults name the objects.
        Forbidden: the role of the caller is limited to other kinds, whose objects are not named.
    """
    barred = [
        target
        for target, _ in unnamed
        for kind in (target.name, *target.kind.removes)
        if isinstance(caller, Principal) and not caller.may_apply(kind_in_manifests(kind))
    ]
    if barred:  # guard: role-kinds-pruned
        reason = "would remove objects of kinds to which the role of this person is not limited"
        rule = DecidingRule(RuleKind.SCOPE)
        raise Forbidden(f"pruning {reason}", faults=[Fault(pointer="/prune", reason=reason)], rule=rule)
    named = [words_of((target.name, target.key_of(one))) for target, one in unnamed]
    faults = [Fault(pointer="/prune", reason=f"would remove the {each}") for each in named]
    if len(unnamed) > given.max_deletions:  # guard: prune-bounded
        message = f"pruning would remove {len(unnamed)} objects (`max_deletions` {given.max_deletions})"
        raise Conflict(message, faults=faults[:MAX_FAULTS])
    protected = [fault for fault, (target, _) in zip(faults, unnamed, strict=True) if target.is_protected]
    if protected and not given.prune_protected:  # guard: prune-protected
        raise Conflict(f"{protected[0].reason}; `prune_protected` permits it", faults=protected[:MAX_FAULTS])
