"""Requested issuers, and all that is fetched for them before the transaction that stores them.

When an issuer is created or enabled, or its key URL changes, metadata and keys are fetched. So a typing error is found
at once instead of at the first sign-in. A disabled issuer is not fetched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from gateway.catalog.identity import introspection_clients, sign_in_clients
from gateway.catalog.identity.client_secrets import settle_reference
from gateway.catalog.identity.introspection_clients import IntrospectionDraft, IssuerPlace
from gateway.catalog.identity.issuer_keys import FoundKeys, find_keys
from gateway.catalog.identity.sign_in_clients import SignInDraft
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.domain.tenancy.issuers import (
    AdmissionRule,
    IntrospectionClient,
    Issuer,
    ManagedIntrospection,
    ManagedSignIn,
    SignInClient,
)
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Fault, Forbidden, InvalidBody
from gateway.kinds.members import settable

C = TypeVar("C", SignInClient, IntrospectionClient)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerDraft:
    """A requested issuer; without `jwks_url`, the issuer's metadata contains the URL of its keys."""

    name: str
    url: str
    rules: tuple[AdmissionRule, ...]
    algorithms: tuple[str, ...]
    subject_claim: str
    groups_claim: str
    max_lifetime_s: int
    enabled: bool = True
    jwks_url: str | None = None
    audiences: tuple[str, ...] = ()
    sign_in: SignInDraft | None = None
    introspection: IntrospectionDraft | None = None
    requires_dpop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedIssuer:
    """A requested issuer with all that was fetched for it; `draft` has the endpoint of its introspection client."""

    draft: IssuerDraft
    keys: FoundKeys
    client: SignInClient | None


async def prepare(
    tenant: TenantId, catalog: CatalogContext, draft: IssuerDraft, before: Issuer | None = None, *, by: Author
) -> PreparedIssuer:
    """Fetch metadata and keys of a requested issuer as far as they are needed, outside of transactions.

    Raises:
        InvalidBody, Forbidden: as for `create_issuer`.
    """
    known = frozenset[str]() if before is None else frozenset(before.audiences)
    check_author(by, frozenset(draft.audiences) - known)
    keys = FoundKeys(draft.jwks_url or "")
    if draft.enabled and before is not None and before.enabled and draft.jwks_url == before.jwks_url:
        keys = FoundKeys(before.jwks_url)
    elif draft.enabled:
        keys = await find_keys(tenant, catalog, draft)
    client = await _find_client(tenant, catalog, draft, before, by=by)
    found = await _find_introspection(tenant, catalog, draft, before, by=by)
    return PreparedIssuer(draft=found, keys=keys, client=client)


def described(draft: IssuerDraft, before: Issuer) -> Issuer:
    """The issuer of a draft without new endpoints; those of the stored clients are no part of a draft."""
    sign_in, introspection = draft.sign_in, draft.introspection
    client = None if sign_in is None else sign_in_clients.described(sign_in, before.sign_in)
    inspected = None if introspection is None else introspection.client
    if inspected is not None and before.introspection is not None:
        inspected = replace(inspected, url=before.introspection.url)
    members: dict[str, Any] = {name: getattr(draft, name) for name in IssuerDraft.__slots__}
    members |= {"sign_in": client, "introspection": inspected, "jwks_url": draft.jwks_url or ""}
    return replace(before, **members)


def draft_of(issuer: Issuer) -> IssuerDraft:
    """The draft of a stored issuer, which keeps the secrets of its clients."""
    members: dict[str, Any] = {name: getattr(issuer, name) for name in IssuerDraft.__slots__}
    members["jwks_url"] = issuer.jwks_url or None
    members["sign_in"] = sign_in_clients.draft_of(issuer.sign_in)
    members["introspection"] = introspection_clients.draft_of(issuer.introspection)
    return IssuerDraft(**members)


def check_author(by: Author, audiences: Sequence[str] | frozenset[str]) -> None:
    """Only the operator may name audiences, because tokens of other resources become valid here."""
    caller = by.caller
    if not isinstance(caller, Principal):
        return
    if Scope.MCP not in caller.scopes:  # guard: issuer-author-grants
        raise Forbidden("the key lacks the scope mcp and cannot admit people; ask the operator")
    if audiences:  # guard: issuer-audiences-operator
        raise Forbidden("only the operator names audiences", rule=OPERATOR_RULE)


async def _find_introspection(
    tenant: TenantId, catalog: CatalogContext, draft: IssuerDraft, before: Issuer | None = None, *, by: Author
) -> IssuerDraft:
    """Return the draft with the endpoint of its introspection client."""
    if draft.introspection is None:
        return draft
    issuer = IssuerPlace(url=draft.url, enabled=draft.enabled, before=before)
    found = await introspection_clients.find_introspection(tenant, catalog, draft.introspection, issuer, by=by)
    return replace(draft, introspection=found)


async def _find_client(
    tenant: TenantId, catalog: CatalogContext, draft: IssuerDraft, before: Issuer | None = None, *, by: Author
) -> SignInClient | None:
    """Return the gateway's client at the issuer, with its endpoints as soon as the issuer is enabled."""
    wanted, stored = draft.sign_in, None if before is None else before.sign_in
    if wanted is None:
        return None
    if tenant == INSTALLATION:
        fault = Fault(pointer="/sign_in", reason="operators send access tokens; leave it out")
        raise InvalidBody(f"sign_in: {fault.reason}", faults=[fault])
    sign_in_clients.check_draft(wanted, draft.audiences)
    client = settle_reference(catalog, wanted.client, wanted.secret, stored=stored, pointer="/sign_in", by=by)
    wanted = replace(wanted, client=client)
    if draft.enabled and sign_in_clients.is_changed(wanted, before):
        return await sign_in_clients.find_endpoints(tenant, catalog, wanted, draft.url)
    return sign_in_clients.described(wanted, stored)


def clients_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The drafts of the clients that the members of a request describe, for those that it has."""
    found: dict[str, Any] = {}
    if "sign_in" in values:
        given: ManagedSignIn | None = values["sign_in"]
        parameters = {} if given is None else {"parameters": tuple(given.given_parameters.items())}
        found["sign_in"] = given and SignInDraft(client=_plain(SignInClient, given, parameters), secret=_secret(given))
    if "introspection" in values:
        asked: ManagedIntrospection | None = values["introspection"]
        found["introspection"] = asked and IntrospectionDraft(
            client=_plain(IntrospectionClient, asked, {}), secret=_secret(asked)
        )
    return found


def _plain(of: type[C], given: Any, more: Mapping[str, Any]) -> C:
    """The client of a request without its secret."""
    build = cast("Callable[..., C]", of)
    return build(**{one.name: getattr(given, one.name) for one in settable(of)}, **more)


def _secret(given: ManagedSignIn | ManagedIntrospection) -> str | None:
    return None if given.client_secret is None else given.client_secret.reveal()
