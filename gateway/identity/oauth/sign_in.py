"""Sign-in of a person at an issuer of the tenant (OpenID Connect), completed once and in the same browser.

The pending sign-in is stored in an encrypted browser cookie. So unauthenticated requests store nothing on the server,
and any replica can complete a sign-in.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from gateway.catalog.identity.client_secrets import open_client_secret
from gateway.catalog.identity.sign_ins import enter_sign_in
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import IssuerId, TenantId, new_sign_in_id
from gateway.domain.refusals import SecretUnavailable, SignInExpired, SignInFailed, SignInRefused
from gateway.domain.tenancy.issuers import Issuer, new_person
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.sign_ins import SignIn
from gateway.errors import TokenRefused
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.oauth.limits import PENDING_S
from gateway.identity.oauth.relying_party import (
    AuthorizationTerms,
    ProviderIdentity,
    RelyingParty,
    authorization_url,
    client_of,
)
from gateway.identity.refusal_trail import RefusalTrail, note_sign_in

log = structlog.get_logger(__name__)

SESSION = timedelta(hours=8)
"""Maximum duration of a browser session."""
_CONTINUATION = timedelta(days=1)
"""Period for which tasks and approved calls of a person continue after the session, as for access tokens."""
NAMED = frozenset({"access_denied", "login_required", "consent_required", "interaction_required", "invalid_scope"})
"""Error codes of authorization responses that messages may contain; others are omitted."""

_UNREAD_CLIENT = (
    "The gateway cannot read the secret of its client at the provider from its external store; begin again later, or"
    " ask the tenant's administrator."
)
UseOnce = Callable[[TenantId, str, int], Awaitable[bool]]
"""Marks an id as used for a number of seconds; returns False if it was already used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """A started sign-in; the browser is redirected to the path `target` afterwards."""

    tenant: TenantId
    issuer: IssuerId
    terms: AuthorizationTerms
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationResponse:
    """Parameters of the provider's redirect to the callback (RFC 6749 section 4.1.2, RFC 9207)."""

    state: str
    code: str | None = None
    error: str | None = None
    issuer: str | None = None


class SignInFlow:
    """Starts and completes sign-ins."""

    def __init__(
        self, catalog: CatalogContext, provider: RelyingParty, use_once: UseOnce, refusals: RefusalTrail
    ) -> None:
        self._catalog = catalog
        self._provider = provider
        self._use_once = use_once
        self._refusals = refusals

    def begin(
        self,
        tenant: TenantId,
        issuer: Issuer,
        *,
        redirect_uri: str,
        target: str,
        scopes: frozenset[str] = frozenset(),
        is_forced: bool = False,
    ) -> tuple[str, PendingSignIn]:
        """Return the authorization URL, and the pending sign-in to store in the browser.

        `scopes` are requested in addition to those of the issuer's client.

        Raises:
            SignInFailed: the gateway has no client at the issuer.
        """
        client = client_of(issuer)
        terms = AuthorizationTerms(
            redirect_uri=redirect_uri,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            scopes=tuple(dict.fromkeys((*client.scopes, *sorted(scopes)))),
            is_forced=is_forced,
        )
        pending = PendingSignIn(tenant=tenant, issuer=issuer.id, terms=terms, target=target)
        return authorization_url(issuer, terms), pending

    async def finish(
        self,
        tenant: TenantId,
        pending: PendingSignIn | None,
        issuer: Issuer,
        response: AuthorizationResponse,
        *,
        correlation_id: str,
    ) -> tuple[SignIn, Key]:
        """Exchange the code of the response; store and return the sign-in and the person.

        Raises:
            SignInExpired: another browser started this sign-in, or it is already completed.
            SignInFailed: the provider refused, or its response is invalid.
            SignInRefused: the person is denied, or no rule admits the person.
            UpstreamError, Unavailable: the provider, the database or Redis is unavailable.
        """
        # guard: sign-in-state
        if pending is None or not hmac.compare_digest(pending.terms.state.encode(), response.state.encode()):
            raise _expired()
        if (pending.tenant, pending.issuer) != (tenant, issuer.id):  # guard: sign-in-issuer
            raise _expired()
        self._check_issuer(tenant, issuer, response)
        if not await self._use_once(tenant, f"sign-in {pending.terms.state}", PENDING_S):  # guard: sign-in-once
            raise _expired()
        if response.code is None:
            why = response.error if response.error in NAMED else "no reason that can be shown"
            raise SignInFailed(f"The provider did not sign you in ({why}); begin again.")
        try:
            secret = await self._open_secret(tenant, issuer)
            found = await self._provider.exchange_code(tenant, issuer, secret, pending.terms, code=response.code)
        except TokenRejected as rejected:
            note_sign_in(self._refusals, tenant, f"issuer:{issuer.name}", rejected.reason)
            raise SignInFailed("The provider's response is not valid for this sign-in; begin again.") from None
        except TokenRefused as refused:
            note_sign_in(self._refusals, tenant, f"issuer:{issuer.name}", refused.error or "refused")
            raise SignInFailed(f"The provider gave no tokens for this sign-in. {refused.message}") from None
        return await self._store_sign_in(tenant, issuer, found, pending.terms, correlation_id=correlation_id)

    async def _open_secret(self, tenant: TenantId, issuer: Issuer) -> str:
        try:
            return await open_client_secret(tenant, self._catalog, issuer)
        except SecretUnavailable as error:
            log.warning("client_secret_unavailable", tenant_id=tenant, issuer=issuer.name, reason=error.message)
            raise SignInFailed(_UNREAD_CLIENT) from None

    async def _store_sign_in(
        self,
        tenant: TenantId,
        issuer: Issuer,
        found: ProviderIdentity,
        terms: AuthorizationTerms,
        *,
        correlation_id: str,
    ) -> tuple[SignIn, Key]:
        if not issuer.admits(found.claims):  # guard: sign-in-rules
            note_sign_in(self._refusals, tenant, f"user:{issuer.subject_of(found.claims.subject)}", "rules")
            raise SignInRefused("No rule of the issuer admits you; ask the tenant's administrator.")
        now = datetime.now(UTC)
        person = new_person(tenant, issuer, found.claims.subject, ends_at=now + SESSION + _CONTINUATION)
        sign_in = SignIn(
            id=new_sign_in_id(),
            issuer=issuer.id,
            person=person.id,
            claims=found.claims,
            requested_scopes=frozenset(terms.scopes),
            created_at=now,
            checked_at=now,
            session_ends_at=now + SESSION,
        )
        try:
            entered = await enter_sign_in(
                tenant, self._catalog, person, sign_in, tokens=found.tokens, correlation_id=correlation_id
            )
        except SignInRefused:
            note_sign_in(self._refusals, tenant, f"user:{person.principal}", "denied")
            raise
        return sign_in, entered

    def _check_issuer(self, tenant: TenantId, issuer: Issuer, response: AuthorizationResponse) -> None:
        """Refuse a response of another issuer (RFC 9207 section 2.4)."""
        is_other = response.issuer is not None and response.issuer != issuer.url
        is_missing = response.issuer is None and client_of(issuer).names_issuer
        if is_other or is_missing:  # guard: sign-in-response-issuer
            note_sign_in(self._refusals, tenant, f"issuer:{issuer.name}", "issuer")
            raise SignInFailed("The response was not of the provider at which the sign-in began; begin again.")


def _expired() -> SignInExpired:
    return SignInExpired(
        "This sign-in was not begun in this browser, took more than ten minutes, or was used before. Begin again, and"
        " allow cookies."
    )
