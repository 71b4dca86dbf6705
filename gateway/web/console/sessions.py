"""Sign-in sessions of pages: one sealed cookie, bound to a key with the scope `approve`, its version and its tenant.

The cookie contains the principal, never the key. It ends after an hour without a request and after eight hours in all.
Each request looks the key up, so a revoked or rotated key ends its sessions at once, at every replica. Signing out
deletes the cookie, and marks the session as ended for copies of the cookie; without Redis, the mark does not count.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Forbidden, RedisUnavailable
from gateway.identity.authenticator import Authenticator

SESSION_PURPOSE = "console sessions"
IDLE_S = 3600
LONGEST_S = 8 * 3600
_SECURE_NAME = "__Host-gateway-session"
_PLAIN_NAME = "gateway-session"
"""The name without TLS, where browsers refuse the prefix `__Host-`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSession:
    """One sign-in of a person; `is_secure` is True if the browser reached the page over TLS."""

    id: str
    principal: Principal
    began_at: float
    is_secure: bool


class EndedSessions(Protocol):
    """The marks of sessions that were signed out, shared by all replicas."""

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        """Mark the id for `for_s` seconds."""
        ...

    async def is_used(self, tenant: TenantId, nonce: str) -> bool:
        """True if the id is marked."""
        ...


class ConsoleSessions:
    """Begins, finds and seals sessions; `keys` seal the cookies, the first of them new ones."""

    def __init__(
        self,
        keys: Sequence[bytes],
        credentials: Authenticator,
        ended: EndedSessions,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seal = MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
        self._forms = keys[0]
        self._credentials = credentials
        self._ended = ended
        self._clock = clock

    async def begin(self, key: str, *, address: str, is_secure: bool) -> ConsoleSession:
        """Sign in with the text of a key.

        Raises:
            Unauthenticated: the key is not valid.
            LimitExceeded: the address has too many failures.
            Forbidden: the key lacks the scope `approve`, or is the operator's, which belongs to no tenant.
            DatabaseUnavailable: the key cannot be checked now.
        """
        caller = await self._credentials.authenticate(f"Bearer {key}", address=address)
        if not isinstance(caller, Principal) or Scope.APPROVE not in caller.scopes:  # guard: console-scope
            raise Forbidden("sign in with a tenant's key that has the scope approve")
        return ConsoleSession(id=secrets.token_hex(16), principal=caller, began_at=self._clock(), is_secure=is_secure)

    async def find(self, cookies: Mapping[str, str]) -> ConsoleSession | None:
        """The session of a request's cookies, if its time is not over and its key is valid and unchanged.

        Raises:
            DatabaseUnavailable: the key cannot be looked up now.
        """
        found = self._open(cookies.get(_SECURE_NAME), is_secure=True) or self._open(
            cookies.get(_PLAIN_NAME), is_secure=False
        )
        if found is None or not await self._credentials.still_valid(found.principal):  # guard: console-key-valid
            return None
        with suppress(RedisUnavailable):
            if await self._ended.is_used(found.principal.tenant, found.id):  # guard: console-signed-out
                return None
        return found

    async def end(self, session: ConsoleSession) -> None:
        """Mark a session as ended for as long as a copy of its cookie could be used."""
        with suppress(RedisUnavailable):
            await self._ended.use(session.principal.tenant, session.id, for_s=LONGEST_S)

    def cookie_of(self, session: ConsoleSession) -> str:
        """The `Set-Cookie` header of a session, sealed now; the idle time begins again."""
        token = self._seal.encrypt_at_time(msgspec.json.encode(session), int(self._clock())).decode()
        return _cookie(token, is_secure=session.is_secure, max_age=IDLE_S)

    def form_token(self, session: ConsoleSession) -> str:
        """The token that each form of a session carries."""
        return hmac.digest(self._forms, f"form {session.id}".encode(), hashlib.sha256).hex()

    def is_form_token(self, session: ConsoleSession, token: str) -> bool:
        """True if a form of this session carried the token."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode())

    def _open(self, token: str | None, *, is_secure: bool) -> ConsoleSession | None:
        if token is None:
            return None
        now = self._clock()
        try:
            plain = self._seal.decrypt_at_time(token, IDLE_S, int(now))  # guard: console-idle
            found = msgspec.json.decode(plain, type=ConsoleSession)
        except (InvalidToken, ValueError):
            return None
        is_over = now - found.began_at > LONGEST_S  # guard: console-longest
        return None if is_over or found.is_secure is not is_secure else found


def ended_cookies() -> tuple[str, str]:
    """The `Set-Cookie` headers that delete a session in the browser."""
    return _cookie("", is_secure=True, max_age=0), _cookie("", is_secure=False, max_age=0)


def _cookie(token: str, *, is_secure: bool, max_age: int) -> str:
    name, more = (_SECURE_NAME, "; Secure") if is_secure else (_PLAIN_NAME, "")
    return f"{name}={token}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Strict{more}"
