"""Issuers as targets of manifests: metadata and keys are fetched before the transaction, and written in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson

from gateway.catalog.etags import tag_of
from gateway.catalog.identity.admin_bounds import check_issuers
from gateway.catalog.identity.issuer_drafts import IssuerDraft, PreparedIssuer, clients_of, described, prepare
from gateway.catalog.identity.issuers import write_change, write_new, write_removal
from gateway.catalog.kinds.engines.special_functions import Compose, refuse_id
from gateway.catalog.transaction import Author, CatalogContext, CatalogOptions, OpenChanges
from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.members.markers import About
from gateway.domain.members.secret import Secret
from gateway.domain.tenancy.issuers import Issuer
from gateway.errors import Conflict, Fault, InvalidBody
from gateway.kinds.identity import MANAGED_ISSUER
from gateway.kinds.kind import Kind
from gateway.kinds.members import Member, members_of, settable, values_of
from gateway.kinds.references import Address
from gateway.store.engine import Db
from gateway.store.identity import issuers

_PLACEHOLDER = datetime.fromtimestamp(0, UTC)
_CLIENTS = ("sign_in", "introspection")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerState(Issuer):
    """An issuer, stored or wanted; a wanted one has its draft."""

    secrets: Annotated[
        Secret | None, About("The given secrets as one text, to compare them with those that the set applied last.")
    ] = None
    draft: IssuerDraft | None = field(default=None, repr=False)
    prepared: PreparedIssuer | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyIssuer:
    """Composes an issuer with all that was fetched for it, if `seen` is still the current one."""

    compose: Compose[Any]
    seen: IssuerState | None
    prepared: PreparedIssuer | None = None

    def __call__(self, current: IssuerState | None) -> IssuerState:
        """Return the issuer to write.

        Raises:
            Conflict: the issuer was changed since it was prepared.
        """
        wanted: IssuerState = self.compose(current)
        if self.prepared is None and _is_equal(wanted, current):
            return wanted
        versions = [one and one.version for one in (self.seen, current)]
        if versions[0] != versions[1]:  # guard: manifest-issuer-as-prepared
            raise Conflict("the issuer was changed at the same time; read it again")
        return replace(wanted, prepared=self.prepared)


_OWN = settable(Issuer)
_MEMBERS: Sequence[Member] = [
    *_OWN,
    *(one for one in members_of(IssuerState) if one.name in {*_CLIENTS, "secrets"}),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerTarget:
    """The issuers of a tenant; see `CollectionTarget`."""

    rank: int
    is_prepared: bool = True
    is_protected: bool = True

    @property
    def kind(self) -> Kind[Any]:
        """The declaration of issuers in manifests."""
        return MANAGED_ISSUER

    @property
    def name(self) -> str:
        """The name of the kind."""
        return self.kind.name

    @property
    def members(self) -> Sequence[Member]:
        """The members that are compared."""
        return _MEMBERS

    async def read(self, tenant: TenantId, db: Db, key: str, *, is_locked: bool = False) -> IssuerState | None:
        """The issuer of this name; None if there is none. Each change of an issuer holds the lock of the tenant.

        Raises:
            InvalidBody: the key is an id.
        """
        del is_locked
        found = await issuers.get(tenant, db, key)
        if found is not None:
            refuse_id(self.kind, key, found.name)
        return None if found is None else _state(found)

    async def read_id(self, tenant: TenantId, db: Db, of: str) -> IssuerState | None:
        """The issuer with this id; None if there is none."""
        found = await issuers.get(tenant, db, of)
        return None if found is None or found.id != of else _state(found)

    def key_of(self, one: IssuerState) -> str:
        """The name of an issuer."""
        return one.name

    def id_of(self, one: IssuerState) -> str:
        """The id of an issuer."""
        return str(one.id)

    def forms(self, one: IssuerState) -> Sequence[IssuerState]:
        """The forms of which a set may have a digest: the issuer itself."""
        return (one,)

    def is_untouched(self, one: IssuerState, options: CatalogOptions) -> bool:
        """False: a request has created each issuer."""
        del one, options
        return False

    async def tag(self, tenant: TenantId, db: Db, one: Any) -> str:
        """The entity tag of an issuer."""
        del tenant, db
        return tag_of(one)

    def refers(self, one: IssuerState) -> frozenset[Address]:
        """The profiles that the rules name."""
        return frozenset(("profile", name) for rule in one.rules for name in rule.profiles or ())

    def compose(self, name: str, values: Mapping[str, Any], current: IssuerState | None) -> IssuerState:
        """The wanted issuer, given the values of the members of its manifest.

        An absent `jwks_url` keeps the URL that the metadata had; an absent secret and reference keep the stored one.

        Raises:
            InvalidBody: the manifest has another URL than the issuer.
        """
        if current is not None and values["url"] != current.url:
            reason = f"is set at creation only; it is {current.url}"
            raise InvalidBody(f"/url: {reason}", faults=[Fault(pointer="/url", reason=reason)])
        own = {one.name: values[one.name] for one in _OWN}
        own["jwks_url"] = own["jwks_url"] or ("" if current is None else current.jwks_url) or None
        draft = IssuerDraft(name=name, **own, **clients_of(values))
        base = current or _new(draft)
        wanted = described(draft, base)
        kept = {each: _with_reference(wanted, base, each) for each in _CLIENTS}
        given = {each: client.secret for each in _CLIENTS if (client := getattr(draft, each)) and client.secret}
        text = orjson.dumps(given, option=orjson.OPT_SORT_KEYS).decode()
        return replace(_state(wanted), **kept, draft=draft, secrets=Secret(text) if given else None)

    async def ready(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        compose: Compose[Any],
        current: IssuerState | None,
        *,
        by: Author,
    ) -> ReadyIssuer:
        """Fetch metadata and keys; return the function that composes the issuer to write.

        Raises:
            GatewayError: as for a change by a request.
        """
        wanted: IssuerState = compose(current)
        if wanted.draft is None or _is_equal(wanted, current):
            return ReadyIssuer(compose=compose, seen=current)
        prepared = await prepare(tenant, catalog, wanted.draft, current, by=by)
        return ReadyIssuer(compose=compose, seen=current, prepared=prepared)

    async def write(self, opened: OpenChanges, key: str, compose: Compose[Any]) -> IssuerState:
        """Create or replace an issuer; an equal one is not written."""
        current = await self.read(opened.tenant, opened.db, key)
        wanted: IssuerState = compose(current)
        if current is not None and _is_equal(wanted, current):
            return current
        if wanted.prepared is None:
            raise Conflict("the issuer was changed at the same time; read it again")
        if current is None:
            return _state(await write_new(opened, wanted.prepared))
        return _state(await write_change(opened, wanted.prepared, _stored(current)))

    async def check_adoption(self, opened: OpenChanges, one: IssuerState) -> None:
        """Refuse to take over an issuer that the caller may not change."""
        await check_issuers(opened.tenant, opened.db, one.name, by=opened.by)  # guard: manifest-issuer-adoption

    async def remove(self, opened: OpenChanges, one: IssuerState) -> None:
        """Remove an issuer with its people."""
        await write_removal(opened, _stored(one))


def _is_equal(wanted: IssuerState, current: IssuerState | None) -> bool:
    return current is not None and values_of(wanted, _MEMBERS) == values_of(current, _MEMBERS)


def _with_reference(wanted: Issuer, base: Issuer, name: str) -> Any:
    """A client without a reference as it is stored: with the stored reference, if it is given no secret."""
    client, stored = getattr(wanted, name), getattr(base, name)
    if client is None or stored is None or client.client_secret_reference is not None:
        return client
    return replace(client, client_secret_reference=stored.client_secret_reference)


def _state(found: Issuer) -> IssuerState:
    return IssuerState(**values_of(found, members_of(Issuer)))


def _stored(state: IssuerState) -> Issuer:
    return Issuer(**values_of(state, members_of(Issuer)))


def _new(draft: IssuerDraft) -> Issuer:
    """The form of an issuer that does not exist yet."""
    now = _PLACEHOLDER
    return Issuer(
        id=IssuerId(""),
        name=draft.name,
        url=draft.url,
        rules=draft.rules,
        version=0,
        created_at=now,
        updated_at=now,
    )
