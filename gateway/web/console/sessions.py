"""Browser sessions of key holders: one encrypted cookie, bound to the key, its version and its tenant.

The approval pages accept keys with the scope `approve`; the tenant page accepts keys with the scope `mcp`.

The cookie contains the principal, never the key. It expires after an hour without a request, and after eight hours in
total. Each request looks up the key, so a revoked or rotated key ends its sessions at once on every replica. A sign-out
deletes the cookie. It also revokes the session id in Redis, because the cookie may have been copied; while Redis is
unavailable, revocations are not checked.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import msgspec

from gateway.domain.audit import SIGN_IN, RuleKind
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.accounts import AccountOwner
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import DecidingRule, Forbidden, RedisUnavailable
from gateway.identity.authenticator import Authenticator
from gateway.identity.refusal_trail import note_refusal
from gateway.web.console.limits import MAX_SESSION_S
from gateway.web.html.limits import IDLE_S
from gateway.web.html.sealed_cookies import SealedCookies

SESSION_PURPOSE = "console sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSession:
    """The session of one sign-in; `is_secure` is True if the browser reached the page over TLS."""

    id: str
    principal: Principal
    began_at: float
    is_secure: bool

    @property
    def tenant(self) -> TenantId:
        """The tenant of the key."""
        return self.principal.tenant

    @property
    def slug(self) -> str:
        """The slug of the tenant."""
        return self.principal.slug

    @property
    def owner(self) -> AccountOwner:
        """The holder of the key as the owner of accounts at upstreams."""
        principal = self.principal
        return AccountOwner(tenant=principal.tenant, id=principal.key, subject=principal.subject, name=principal.name)

    @property
    def sign_out_path(self) -> str:
        """The path of the form that ends the session."""
        return f"/t/{self.slug}/key/sign-out"

    def admits(self, profile: str) -> bool:
        """True if the key may use the profile: it is bound to none or to this one."""
        return self.principal.profile in {None, profile}


class EndedSessions(Protocol):
    """Revoked session ids, shared by all replicas."""

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        """Record the session id as revoked for `for_s` seconds."""
        ...

    async def is_used(self, tenant: TenantId, nonce: str) -> bool:
        """True if the session id is revoked."""
        ...


class ConsoleSessions:
    """Creates and reads sessions, stored in the encrypted cookie `name`.

    `keys` decrypt cookies; the first one encrypts new cookies.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        credentials: Authenticator,
        ended: EndedSessions,
        *,
        scope: Scope = Scope.APPROVE,
        name: str = "gateway-session",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cookies = SealedCookies(
            keys,
            name,
            life_s=IDLE_S,
            # the OAuth callback of a user connection arrives as a cross-site navigation
            same_site="Strict" if scope is Scope.APPROVE else "Lax",
            clock=clock,
        )
        self._csrf_key = keys[0]
        self._credentials = credentials
        self._ended = ended
        self._scope = scope
        self._clock = clock

    async def begin(self, key: str, *, address: str, is_secure: bool) -> ConsoleSession:
        """Authenticate with a tenant key, and create a session.

        Raises:
            Unauthenticated: the key is not valid.
            LimitExceeded: the address has too many failures.
            Forbidden: the key lacks the scope, or is the operator's, which belongs to no tenant.
            DatabaseUnavailable: the key cannot be checked now.
        """
        caller = await self._credentials.authenticate(f"Bearer {key}", address=address)
        if not isinstance(caller, Principal) or self._scope not in caller.scopes:  # guard: console-scope
            rule = DecidingRule(RuleKind.SCOPE, self._scope)
            refused = Forbidden(f"sign in with a tenant's key that has the scope {self._scope}", rule=rule)
            note_refusal(self._credentials.refusals, caller, refused, action=SIGN_IN)
            raise refused
        return ConsoleSession(id=secrets.token_hex(16), principal=caller, began_at=self._clock(), is_secure=is_secure)

    async def find(self, cookies: Mapping[str, str]) -> ConsoleSession | None:
        """Return the session of a request's cookies if it has not expired and its key is valid and unchanged.

        Raises:
            DatabaseUnavailable: the key cannot be looked up now.
        """
        found = self._open(cookies)
        if found is None or not await self._credentials.still_valid(found.principal):  # guard: console-key-valid
            return None
        with suppress(RedisUnavailable):
            if await self._ended.is_used(found.principal.tenant, found.id):  # guard: console-signed-out
                return None
        return found

    async def end(self, session: ConsoleSession) -> None:
        """Revoke the session id until every copy of its cookie has expired."""
        with suppress(RedisUnavailable):
            await self._ended.use(session.principal.tenant, session.id, for_s=MAX_SESSION_S)

    def cookie_of(self, session: ConsoleSession) -> str:
        """Return the `Set-Cookie` header of a session; its idle time restarts."""
        return self._cookies.write(msgspec.json.encode(session), is_secure=session.is_secure)

    def ended_cookies(self) -> tuple[str, str]:
        """Return the `Set-Cookie` headers that delete the session cookie."""
        return self._cookies.ended()

    def form_token(self, session: ConsoleSession) -> str:
        """Return the CSRF token of a session, which each of its forms contains."""
        return hmac.digest(self._csrf_key, f"form {session.id}".encode(), hashlib.sha256).hex()

    def is_form_token(self, session: ConsoleSession, token: str) -> bool:
        """True if the token is this session's CSRF token."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode())

    def _open(self, cookies: Mapping[str, str]) -> ConsoleSession | None:
        sealed = self._cookies.read(cookies)
        if sealed is None:
            return None
        try:
            found = msgspec.json.decode(sealed[0], type=ConsoleSession)
        except ValueError:
            return None
        is_over = self._clock() - found.began_at > MAX_SESSION_S  # guard: console-longest
        return None if is_over else found
