"""Owners of objects during an application: refusals of foreign objects, drift, and the set that becomes the owner."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyio.lowlevel import checkpoint

from gateway.catalog.manifests.drafts import Draft
from gateway.catalog.manifests.limits import MAX_FAULTS
from gateway.catalog.manifests.manifest import ManifestSet, Wanted
from gateway.catalog.manifests.targets import TARGETS, NamedTarget, SingletonTarget, Target
from gateway.catalog.manifests.value_changes import digest_of, digest_of_secrets, secrets_of
from gateway.catalog.transaction import CatalogChange, CatalogContext, OpenChanges
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.members.secret import Secret
from gateway.domain.tenancy.ownership import VOID, Ownership
from gateway.errors import Conflict, Fault, Forbidden
from gateway.store.kinds import ownership

_KEYS = "audit"
"""The purpose of the keys of digests: these keys are kept when their secret key is removed."""


class Owners:
    """The owners of the named objects, and all that the set owns, as read under the lock of the tenant."""

    def __init__(self, catalog: CatalogContext, given: ManifestSet, found: Sequence[Ownership]) -> None:
        self._catalog = catalog
        self._given = given
        self._found: Mapping[tuple[str, str], Ownership] = {(one.kind, one.id): one for one in found}

    def owner(self, target: Target, one: Any | None) -> Ownership | None:
        """The ownership of an object, if a set owns it."""
        return None if one is None else self._found.get((target.name, target.id_of(one)))

    def refuse_foreign(self, places: Sequence[tuple[int, Wanted, Any | None]]) -> None:
        """Refuse existing objects that the set does not own, without the permission to adopt them.

        Raises:
            Conflict: there are some; each fault names one.
            Forbidden: some of them belong to a set of the operator, and the caller is an admin of the tenant.
        """
        owner = self._given.owner
        if owner is None:
            return
        found = [
            (Fault(pointer=f"/objects/{place}", reason=f"{wanted.words} {reason}"), self.owner(wanted.target, current))
            for place, wanted, current in places
            if (reason := self._obstacle(wanted.target, current))
        ]
        faults = [fault for fault, _ in found]
        barred = [fault for fault, of in found if of is not None and of.is_operators and not owner.is_operators]
        if barred and self._given.adopt:  # guard: manifest-operators-objects
            message = f"{barred[0].reason}; only the operator may take it over"
            raise Forbidden(message, faults=barred[:MAX_FAULTS], rule=OPERATOR_RULE)
        if faults and not self._given.adopt:  # guard: manifest-adopts-nothing
            raise Conflict(f"{faults[0].reason}; `adopt` takes it over", faults=faults[:MAX_FAULTS])

    def has_drifted(self, target: Target, one: Any | None) -> bool:
        """True if an object differs from what its set applied last."""
        owned = self.owner(target, one)
        if one is None or owned is None or owned.owner != self._given.owner:
            return False
        if owned.secrets == VOID:
            return True
        keys = self._catalog.sealer.derive_kept(_KEYS)
        digests = (digest_of(each, target.members, key=key) for key in keys for each in target.forms(one))
        return not any(hmac.compare_digest(digest, owned.digest) for digest in digests)

    async def keep_secrets(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """The drafts without the secrets that their set applied last."""
        kept: list[Draft] = []
        for draft in drafts:
            kept.append(self._keep_secrets(draft))
            await checkpoint()  # guard: manifest-secrets-compared-in-steps
        return kept

    def _keep_secrets(self, draft: Draft) -> Draft:
        """The draft without the secrets that its set applied last, if nothing else would change; else the draft itself.

        Stored objects have no secrets to compare, so the object would be written each time.
        """
        wanted, target = draft.wanted, draft.wanted.target
        owned, given = self.owner(target, draft.before), secrets_of(draft.composed)
        if owned is None or owned.owner != self._given.owner or owned.secrets is None or not given:
            return draft
        keys, secrets = self._catalog.sealer.derive_kept(_KEYS), owned.secrets
        digests = (digest_of_secrets(given, owned.id, key=key) for key in keys)
        if not any(hmac.compare_digest(each, secrets) for each in digests):  # guard: manifest-secrets-compared
            return draft

        def compose(current: Any | None) -> Any:
            composed: Any = wanted.compose(current)
            return composed if current is None else replace(composed, **dict.fromkeys(given))

        kept = replace(draft, composed=compose(draft.before), wanted=replace(wanted, compose=compose))
        return kept if kept.is_equal else draft

    async def own(
        self, opened: OpenChanges, target: Target, one: Any, *, secrets: Mapping[str, Secret], is_written: bool
    ) -> bool:
        """Store the set as the owner of an object; True if this took over an object that is not written otherwise.

        `secrets` are the secret parts that were written with it.
        """
        owner, of = self._given.owner, target.id_of(one)
        if owner is None:
            return False
        former = self.owner(target, one)
        digest = digest_of(target.forms(one)[0], target.members, key=self._catalog.chain_key)
        sealed = None if former is None or former.owner != owner else former.secrets or None
        if secrets:
            sealed = digest_of_secrets(secrets, of, key=self._catalog.chain_key)
        owned = Ownership(
            kind=target.name, id=of, set=owner.name, is_operators=owner.is_operators, digest=digest, secrets=sealed
        )
        if owned == former:
            return False
        is_adopted = not is_written and (former is None or former.owner != owner)
        if is_adopted:
            detail: dict[str, object] = {"id": of, "from": None if former is None else former.set}
            key = target.key_of(one) or target.name
            async with opened.one(CatalogChange(action=f"{target.name}.adopt", target=key, detail=detail)):
                await target.check_adoption(opened, one)
        await ownership.save(opened.tenant, opened.db, owned)
        return is_adopted

    async def unnamed(self, opened: OpenChanges, named: set[tuple[str, str]]) -> Sequence[tuple[NamedTarget, Any]]:
        """The objects that the set owns and the manifests do not name; singletons are never removed."""
        found: list[tuple[NamedTarget, Any]] = []
        for (kind, of), owned in self._found.items():
            target = TARGETS.get(kind)
            # guard: prune-own-objects
            if owned.owner != self._given.owner or (kind, of) in named:
                continue
            if target is None or isinstance(target, SingletonTarget):
                continue
            one = await target.read_id(opened.tenant, opened.db, of)
            if one is not None:
                found.append((target, one))
        return found

    def _obstacle(self, target: Target, one: Any | None) -> str:
        if one is None:
            return ""
        owned = self.owner(target, one)
        if owned is not None:
            return "" if owned.owner == self._given.owner else f"belongs to {owned.owner}"
        return "" if target.is_untouched(one, self._catalog.options) else "exists and belongs to no set"
