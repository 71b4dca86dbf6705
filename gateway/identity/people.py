"""Authentication with access tokens: lookup of the tenant's issuers, token verification, and the principal."""

import math
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Protocol

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.refusals import ProofRefused, ScopeMissing
from gateway.domain.tenancy.access import Rights, Role
from gateway.domain.tenancy.issuers import IdentityClaims, Issuer, TenantIssuers, new_person
from gateway.domain.tenancy.keys import Key, Scope
from gateway.domain.tenancy.principals import InboundToken, Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.errors import NotFound, Unauthenticated
from gateway.identity.access_tokens import KeySource, TokenRejected, VerifiedToken, is_jwt
from gateway.identity.dpop import ProofChecks
from gateway.identity.failure_limit import BatchedLookups
from gateway.identity.introspection import Introspection
from gateway.identity.issued_tokens import IssuedTokens, issuer_claim, names_audience
from gateway.identity.limits import FRESH_ISSUERS_S
from gateway.identity.principals import operator_of
from gateway.identity.refusal_trail import NO_TRAIL, RefusalTrail, note_sign_in
from gateway.identity.single_flight import SingleFlight
from gateway.identity.verified_tokens import VerifiedTokens

_CACHED_RESOURCES = 2000
_CACHED_SLUGS = 10_000
KEPT = timedelta(days=1)
"""Period for which tasks and approved calls of a person continue after the last access token."""
METADATA_PATH = "/.well-known/oauth-protected-resource"
"""The path of the metadata of a resource continues with the path of the resource (RFC 9728 section 3.1)."""
_LABEL = "[a-z0-9-]{1,63}"
_ADMIN_PLACE = "/admin/v1"
_INSTALLATION_PATH = re.compile(rf"{_ADMIN_PLACE}(?:/.*)?")
"""Paths of the admin API, which is a resource of the installation for the people and workloads of its issuers."""
_ADMIN_PATH = re.compile(rf"(?P<place>{_ADMIN_PLACE}/tenants/(?P<slug>{_LABEL}))(?:/.*)?")
"""Paths of a tenant's admin API, which is one resource."""
_PATH = re.compile(rf"(?P<place>/t/(?P<slug>{_LABEL})(?:/(?P<profile>{_LABEL}))?)/(?P<door>mcp|sse|messages)")
"""Paths of resources. Other characters are refused, because a header contains the path. `messages` belongs to `sse`."""


def is_resource_path(path: str) -> bool:
    """True if the path is that of a protected resource of some tenant."""
    return bool(_PATH.fullmatch(path) or _INSTALLATION_PATH.fullmatch(path))


FindIssuers = Callable[[Collection[str]], Awaitable[Mapping[str, TenantIssuers]]]


class Target(NamedTuple):  # created for each request
    """The URL of a request without its query: `base` is scheme and host as the client uses them."""

    base: str
    path: str
    is_bound: bool = False
    """True if the client uses the scheme DPoP, that is, a bound token."""


class Resource(NamedTuple):
    """A protected resource (RFC 9728): the URL that clients use, its tenant's slug, and its profile."""

    url: str
    slug: str
    profile: str
    origin: str
    """Scheme and host of the gateway as the client uses them."""
    is_bound: bool = False
    """True if only bound tokens are accepted; False if only unbound tokens are."""
    is_admin: bool = False
    """True for the admin API of the tenant, which has no profile; people have the scopes of their roles there."""

    @property
    def path(self) -> str:
        """The path of the URL."""
        return self.url.removeprefix(self.origin)

    @property
    def metadata_url(self) -> str:
        """The URL of the metadata (RFC 9728 section 3.1)."""
        return f"{self.origin}{METADATA_PATH}{self.path}"

    @property
    def issuer(self) -> str:
        """The identifier of the tenant's own authorization server."""
        return f"{self.origin}/t/{self.slug}"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The principal of an accepted token, and the stored person."""

    principal: Principal
    person: Key
    fresh_s: float = math.inf
    """Seconds until the next introspection of the token."""


@dataclass(frozen=True, slots=True)
class PresentedToken:
    """An access token from a client network; `is_suspect` is True after many failures from that network."""

    text: str = field(repr=False)
    client: str
    is_suspect: bool = False


@dataclass(frozen=True, slots=True)
class Described:
    """A person as described by a token, and the token's expiry."""

    issuer: Issuer
    person: IdentityClaims
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class TokenVerifiers:
    """Verifiers of the token kinds: JWTs of issuers, tokens of the gateway, opaque tokens, and DPoP proofs.

    Without `introspection`, only JWTs are accepted; without `proofs`, bound tokens are refused.
    """

    keys: KeySource
    issued: IssuedTokens
    introspection: Introspection | None = None
    proofs: ProofChecks | None = None


class PersonStore(Protocol):
    """The stored people and grants."""

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """Return the existing grants as credentials of their people, each with its tenant's slug."""
        ...

    async def enter(self, person: Key) -> Key:
        """Return the stored person; first create the person, or store a changed expiry.

        Raises:
            LimitExceeded: the tenant has too many people.
            DatabaseUnavailable: the person cannot be stored now.
        """
        ...

    async def find_rights(self, principal: Principal) -> Rights:
        """Return the rights of a person now; raises `DatabaseUnavailable` if they cannot be read."""
        ...


class IssuerDirectory:
    """Cached lookup of the issuers of a tenant, by the slug in a URL."""

    def __init__(self, find: FindIssuers, *, interval_s: float) -> None:
        self._find = find
        self._cached = BoundedCache[str, tuple[float, TenantIssuers]](_CACHED_SLUGS)
        self._slugs = BoundedCache[TenantId, str](_CACHED_SLUGS)
        self._turns = SingleFlight[str, TenantIssuers | None]()
        self._batched = BatchedLookups[str, TenantIssuers](find, interval_s=interval_s)
        self._changes = 0

    async def issuers_of(self, slug: str, suspect: str | None = None) -> TenantIssuers | None:
        """Return the enabled issuers of the tenant with this slug; None if it has none, or does not exist.

        `suspect` is the client if many failures made it suspect, so that its lookups are batched.

        Raises:
            LimitExceeded: the batch is full.
            DatabaseUnavailable: the issuers cannot be read now.
        """
        cached = self._cached.get(slug)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        if suspect is not None:  # guard: issuer-lookups-batched
            return await self._batched.find(slug, suspect)
        return await self._turns.take(slug, partial(self._look_up, slug))

    def forget(self, tenant: TenantId) -> None:
        """Drop the cached issuers of a tenant, so that they are read again."""
        self._changes += 1
        self._turns.forget()
        slug = self._slugs.pop(tenant, None)
        if slug is not None:
            self._cached.pop(slug, None)

    async def _look_up(self, slug: str) -> TenantIssuers | None:
        asked_at, changes = time.monotonic(), self._changes
        found = (await self._find([slug])).get(slug)
        self._cached.pop(slug, None)
        if found is not None and changes == self._changes:
            self._cached[slug] = asked_at + FRESH_ISSUERS_S, found
            self._slugs[found.tenant] = slug
        return found


class People:
    """Authenticates people by their access tokens."""

    def __init__(
        self,
        directory: IssuerDirectory,
        verifiers: TokenVerifiers,
        store: PersonStore,
        *,
        public_url: str | None,
        refusals: RefusalTrail = NO_TRAIL,
    ) -> None:
        self.directory = directory
        self.keys = verifiers.keys
        self._store = store
        self.issued = verifiers.issued
        self._verified = VerifiedTokens(verifiers.keys, verifiers.issued)
        self.proofs = verifiers.proofs
        self.introspection = verifiers.introspection
        self._public_url = None if public_url is None else public_url.rstrip("/")
        self._resources = BoundedCache[Target, Resource](_CACHED_RESOURCES)
        self._refusals = refusals

    def resource_of(self, target: Target) -> Resource | None:
        """Return the protected resource at a URL; None if no access token is accepted there."""
        found = self._resources.get(target)  # cached: parsing the path for each call would cost 1 % of the call
        if found is None and (found := self._read_resource(target)) is not None:
            self._resources[target] = found
        return found

    def _read_resource(self, target: Target) -> Resource | None:
        named = _PATH.fullmatch(target.path)  # guard: resource-path
        if named is None:
            return None
        place, slug, profile, door = named["place"], named["slug"], named["profile"], named["door"]
        origin = self._public_url or target.base
        url = f"{origin}{place}/{'sse' if door == 'messages' else door}"
        return Resource(url, slug, profile or DEFAULT_PROFILE, origin, target.is_bound)

    def admin_resource_of(self, target: Target, token: str = "") -> Resource | None:
        """Return the admin API in a URL as a resource; None for other URLs.

        It is that of the tenant in the URL, unless the token is for the whole admin API, which is a resource of the
        installation. Neither is the resource of a token that the gateway issues.
        """
        if _INSTALLATION_PATH.fullmatch(target.path) is None:
            return None
        origin, named = self._public_url or target.base, _ADMIN_PATH.fullmatch(target.path)
        place, slug = (_ADMIN_PLACE, "*") if named is None else (named["place"], named["slug"])
        if named is not None and names_audience(token, origin + _ADMIN_PLACE):
            place, slug = _ADMIN_PLACE, "*"
        return Resource(origin + place, slug, "", origin, target.is_bound, is_admin=True)

    def find_resource(self, target: Target) -> Resource | None:
        """Return the protected resource at a URL, that of the admin API included."""
        return self.resource_of(target) or self.admin_resource_of(target)

    async def sign_in(self, presented: PresentedToken, resource: Resource) -> SignedIn:
        """Verify a token of an issuer or of the gateway itself, and return its person.

        Raises:
            Unauthenticated: the token is not valid for this resource, or the person is denied.
            ScopeMissing: the token is valid, but no rule of its issuer admits the person.
            LimitExceeded: too many lookups for this address are queued, or the tenant has too many people.
            Unavailable: the token cannot be checked now.
        """
        text = presented.text
        found = await self.directory.issuers_of(resource.slug, presented.client if presented.is_suspect else None)
        if found is None:
            note_sign_in(self._refusals, TenantId(""), "", "tenant")
            raise Unauthenticated("")
        try:
            if issuer_claim(text) == resource.issuer and not resource.is_admin:
                return await self._accept_issued(text, found, resource)
            token = await self._verify(presented, found, resource)
            if resource.is_admin and token.audiences != frozenset({resource.url}):  # guard: admin-token-audience
                raise TokenRejected("audience", token.issuer)  # an MCP client may hold a token with a further audience
            self._require_key(found.tenant, token.issuer, token.thumbprint)
            if (token.thumbprint is not None) != resource.is_bound:  # guard: token-bound-as-bearer
                raise TokenRejected("confirmation", token.issuer)
        except TokenRejected as refused:
            name = "" if refused.issuer is None else f"issuer:{refused.issuer.name}"
            note_sign_in(self._refusals, found.tenant if name else TenantId(""), name, refused.reason)
            raise Unauthenticated("") from None
        self._check_rules(found.tenant, token.issuer, token.person, resource.profile or None)
        entered = new_person(found.tenant, token.issuer, token.person.subject, ends_at=token.expires_at + KEPT)
        try:
            person = await self._store.enter(entered)
        except NotFound:  # the issuer was deleted while it was cached
            raise Unauthenticated("") from None
        described = Described(token.issuer, token.person, token.expires_at)
        signed_in = self._admit(resource, person, described, InboundToken(token.issuer.id, text))
        principal = replace(signed_in.principal, thumbprint=token.thumbprint)
        if resource.is_admin:
            principal = await self._with_rights(principal, token)
        return SignedIn(principal, person, token.fresh_s)

    async def _with_rights(self, principal: Principal, token: VerifiedToken) -> Principal:
        """Return a person at the admin API with the scopes of the roles, and `mcp` for a caller of all primitives.

        The person decides about calls in a browser only, where the provider is asked about the person.
        """
        rights = await self._store.find_rights(principal)
        roles = rights.roles - {Role.APPROVE}  # guard: admin-token-approves-nothing
        scopes = {role.scope for role in roles}
        if roles and token.issuer.admits(token.person, DEFAULT_PROFILE):
            scopes.add(Scope.MCP)
        return replace(principal, profile=None, scopes=frozenset(scopes), kinds=rights.kinds)

    async def is_active(self, principal: Principal) -> bool:
        """True if the principal's token needs no introspection, or the issuer still reports it as active."""
        token = principal.token
        if token is None or self.introspection is None:
            return True
        found = await self.directory.issuers_of(principal.slug)
        issuer = None if found is None else next((each for each in found.issuers if each.id == token.issuer), None)
        return issuer is not None and await self.introspection.is_active(principal.tenant, issuer, token.value)

    async def _verify(self, presented: PresentedToken, found: TenantIssuers, resource: Resource) -> VerifiedToken:
        text, client = presented.text, presented.client
        if self.introspection is None:
            return await self._verified.verify(text, found, audience=resource.url)
        if not is_jwt(text):
            return await self.introspection.verify(text, found, audience=resource.url, client=client)
        token = await self._verified.verify(text, found, audience=resource.url)
        return await self.introspection.confirm(found.tenant, text, token)

    async def _accept_issued(self, text: str, found: TenantIssuers, resource: Resource) -> SignedIn:
        """Verify a token that the gateway issued, and look up its grant like a key."""
        token = self._verified.verify_issued(found.tenant, text, issuer=resource.issuer, audience=resource.url)
        issuer = next((each for each in found.issuers if each.id == token.provider), None)
        if issuer is None or issuer.sign_in is None:  # guard: issued-token-provider
            raise TokenRejected("issuer")
        self._require_key(found.tenant, issuer, token.thumbprint)  # guard: issued-dpop-required
        if (token.thumbprint is not None) != resource.is_bound:  # guard: issued-token-bound
            raise TokenRejected("confirmation", issuer)
        self._check_rules(found.tenant, issuer, token.person, resource.profile)
        grant = (await self._store.find([token.grant])).get(token.grant)
        if grant is None or grant[0].tenant != found.tenant:  # guard: issued-token-grant
            raise TokenRejected("grant", issuer)
        signed_in = self._admit(resource, grant[0], Described(issuer, token.person, token.expires_at))
        return replace(signed_in, principal=replace(signed_in.principal, thumbprint=token.thumbprint))

    def _require_key(self, tenant: TenantId, issuer: Issuer, thumbprint: str | None) -> None:
        """Refuse a bearer token if the issuer of its person demands bound tokens."""
        if issuer.requires_dpop and thumbprint is None:  # guard: dpop-required
            note_sign_in(self._refusals, tenant, f"issuer:{issuer.name}", "bearer")
            raise ProofRefused(
                "access tokens of this issuer's people are accepted only with DPoP: request a token that is bound to a"
                " key of the client, and send it with a proof (RFC 9449)"
            )

    def _admit(
        self, resource: Resource, person: Key, described: Described, inbound: InboundToken | None = None
    ) -> SignedIn:
        """Return the principal of a stored person, or of a person's grant.

        Raises:
            Unauthenticated: the person is denied, or the grant is revoked.
        """
        if person.revoked_at is not None:  # guard: person-denied
            note_sign_in(self._refusals, person.tenant, f"user:{person.principal}", "denied")
            raise Unauthenticated("")
        principal = Principal(
            tenant=person.tenant,
            slug=resource.slug,
            key=person.id,
            subject=person.principal,
            scopes=person.scopes,
            profile=resource.profile,
            version=person.version,
            is_person=True,
            operator=operator_of(person),
            packed_groups=described.issuer.packed_groups(described.person),
            packed_scopes=described.issuer.packed_scopes(described.person),
            expires_at=described.expires_at,
            token=inbound,
        )
        return SignedIn(principal, person)

    def _check_rules(self, tenant: TenantId, issuer: Issuer, person: IdentityClaims, profile: str | None) -> None:
        """Refuse a person that no rule of the issuer admits.

        The error contains the scopes of the rules, so that clients can request them.
        """
        if not issuer.admits(person, profile):
            note_sign_in(self._refusals, tenant, f"user:{issuer.subject_of(person.subject)}", "rules")
            refused = "no rule of the issuer admits this person; ask the administrator of the tenant"
            raise ScopeMissing(refused, scopes=issuer.scopes_for(person, profile))
