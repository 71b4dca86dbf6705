"""Authentication of callers by API key, operator key or access token (`gateway.identity.people`).

Well-formed keys are refused with the same message after the same work, so a refusal does not reveal if a key is
unknown, wrong, expired or revoked. A positive result is cached for three seconds under a keyed digest, never under the
key. While the database is unavailable, the result is used for up to a minute; writes fail during that time. Lookups are
single-flight per key, and few run concurrently. A lookup also renews cached results that are in use and expire soon, so
a hundred busy keys cost a few queries a second instead of thirty.
"""

import hashlib
import math
import secrets
import time
from collections import deque
from functools import partial

from gateway.catalog.snapshots.limits import STALE_S
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.http.client_network import client_network
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.refusals import ProofRefused
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.keys import KEY_PREFIX, Key, key_id_of
from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import DatabaseUnavailable, Unauthenticated, Unavailable
from gateway.identity.access_tokens import bearer_token
from gateway.identity.failure_limit import BatchedLookups, FailureLimit
from gateway.identity.key_digests import KeyDigests
from gateway.identity.limits import MAX_REMEMBERED, MAX_RENEWALS, MAX_TOKEN_MARKS, PREFETCH_AGE_S, REMEMBERED_S
from gateway.identity.operator_keys import OperatorKeys
from gateway.identity.people import People, PresentedToken, Resource, Target
from gateway.identity.principals import (
    KeyFinder,
    RememberedCaller,
    is_same,
    key_of,
    lifetime_of,
    principal_of,
    renewed,
    shared,
    tenant_of,
)
from gateway.identity.refusal_trail import NO_TRAIL, RefusalTrail, note_sign_in
from gateway.identity.single_flight import SingleFlight

REFUSED = (
    "the credential is missing or not valid; send the header `Authorization: Bearer KEY` with a key that is neither"
    " expired nor revoked"
)
"""The message of every `Unauthenticated` error."""


_CONCURRENT_SIGN_INS = 10_000
"""So many that a tenant whose issuer hangs occupies no slot of another; requests to an issuer have limits of their own.
"""
_KEY_PREFIX = KEY_PREFIX.encode()


class Authenticator:
    """Authenticates callers by their Authorization header."""

    def __init__(
        self,
        lookup: KeyFinder,
        *,
        digests: KeyDigests,
        operator_key: str | ConfiguredSecret,
        failures: FailureLimit | None = None,
        refusals: RefusalTrail = NO_TRAIL,
        people: People | None = None,
    ) -> None:
        self._finder = lookup
        self.digests = digests
        self.operator_keys = OperatorKeys(operator_key)
        self._seal = secrets.token_bytes(32)
        self._known: dict[bytes, RememberedCaller] = {}
        self._marks = BoundedCache[tuple[str | None, Target], bytes](MAX_TOKEN_MARKS)
        self._renewable: deque[tuple[float, bytes]] = deque(maxlen=MAX_REMEMBERED)
        self._turns = SingleFlight[bytes, Caller]()
        self._sign_ins = SingleFlight[tuple[bytes, str], Caller](at_once=_CONCURRENT_SIGN_INS)
        self._failures = failures or FailureLimit()
        self._batched = BatchedLookups(lookup.find, interval_s=self._failures.interval_s)
        self._changes = 0
        self.refusals = refusals
        """The audit trail of refused requests, for all faces of the gateway."""
        self.people = people
        """Authentication with access tokens; None means that only keys are accepted."""

    @property
    def remembered(self) -> int:
        """Number of cached credentials."""
        return len(self._known)

    async def authenticate(
        self, authorization: str | None, *, address: str = "", target: Target | None = None
    ) -> Caller:
        """Return the caller that the header identifies; `address` is the client's.

        Access tokens are accepted only for the resource at `target`, and not without a target.

        Raises:
            Unauthenticated: the credential is missing or invalid.
            ScopeMissing: the access token is valid, but no rule admits the person.
            LimitExceeded: the address has too many failures, or the batch of lookups is full.
            DatabaseUnavailable: the key cannot be checked now.
        """
        if target is not None and (caller := self._recall(self._marks.get((authorization, target)))) is not None:
            return caller
        token, resource = self._read(authorization, target)
        if token is not None:
            mark = self._mark_of(token, resource)  # guard: remembered-by-token
            if (caller := self._recall(mark)) is not None:
                if resource and target and isinstance(caller, Principal):  # guard: headers-of-access-tokens
                    self._marks[authorization, target] = mark
                return caller
        client = client_network(address)
        suspect = client if self._failures.is_suspect(client) else None  # guard: failures-batched
        try:
            return await self._check(token, resource, client, suspect)
        except Unauthenticated:
            is_exceeded = self._failures.is_exceeded(client)
            self._failures.count(client)
            if is_exceeded:  # guard: failures-limited
                raise self._failures.refusal(client) from None
            raise

    def _recall(self, mark: bytes | None) -> Caller | None:
        known = None if mark is None else self._known.get(mark)
        if known is None or known.until <= time.monotonic():
            return None
        known.is_used = True
        return known.caller

    def _read(self, authorization: str | None, target: Target | None) -> tuple[bytes | None, Resource | None]:
        """Return the token of the header, and the resource if it may be an access token."""
        token = bearer_token(authorization, b"dpop" if target is not None and target.is_bound else b"bearer")
        if target is None or token is None or token.startswith(_KEY_PREFIX):  # guard: key-is-no-token
            return token, None
        return token, self.resource_of(target, token.decode("ascii", "replace"))

    def resource_of(self, target: Target, token: str = "") -> Resource | None:
        """Return the resource at a URL that accepts access tokens: an MCP URL, or the admin API."""
        people = self.people
        return None if people is None else people.resource_of(target) or people.admin_resource_of(target, token)

    def is_operator(self, authorization: str | None) -> bool:
        """True if the header contains the operator's key; needs no lookup."""
        token = bearer_token(authorization)
        return token is not None and self.operator_keys.find(token) is not None

    def is_suspect(self, address: str) -> str | None:
        """Return the client of a suspect address, whose lookups are batched; None for other addresses."""
        client = client_network(address)
        return client if self._failures.is_suspect(client) else None

    def count_failure(self, address: str) -> None:
        """Count a request from this address for a missing object as a failure."""
        self._failures.count(client_network(address))

    async def _check(self, token: bytes | None, resource: Resource | None, client: str, suspect: str | None) -> Caller:
        """Return the caller of a token without a fresh cached result; `suspect`: the client if lookups are batched."""
        if token is not None:
            mark = self._mark_of(token, resource)
            operator = self.operator_keys.find(token)
            if operator is not None:  # not cached: a key that is removed ends at once
                self.operator_keys.uses[operator.key] += 1
                return operator
            if resource is not None:
                sign_in = partial(self._sign_in, token, resource, mark, client, suspect=suspect)
                # only requests of one client network share a lookup, because refusals depend on the network's limits
                return await self._sign_ins.take((mark, client), sign_in)  # guard: sign-ins-once
            # guard: failures-known-keys
            if suspect is None or mark in self._known:  # a token that was valid lately does not wait for a batch
                return await self._look_up(token, mark)
        if suspect is not None:
            return await self._find_batched(token, suspect)
        self._note(None, "missing")
        raise _refusal()

    async def _look_up(self, token: bytes, mark: bytes) -> Caller:
        try:
            return await self._turns.take(mark, partial(self._find, token, mark))  # guard: key-lookups-once
        except DatabaseUnavailable:
            kept = self._known.get(mark)  # a change may have removed it during the lookup
            if kept is None or kept.kept_until <= time.monotonic():
                raise
            return kept.caller

    async def _sign_in(
        self, token: bytes, resource: Resource, mark: bytes, client: str, *, suspect: str | None
    ) -> Principal:
        """Return the person of an access token; cached like a key, at most until the token expires."""
        assert self.people is not None  # without it, no resource is accepted
        kept, changes, asked_at = self._known.get(mark), self._changes, time.monotonic()
        text = token.decode("ascii", "replace")
        presented = PresentedToken(text, client, kept is None and suspect is not None)
        try:
            found = await self.people.sign_in(presented, resource)
        except Unavailable:
            if kept is None or not isinstance(kept.caller, Principal) or kept.kept_until <= time.monotonic():
                raise
            return kept.caller
        except Unauthenticated as error:
            self._known.pop(mark, None)
            raise error if isinstance(error, ProofRefused) else _refusal() from None
        principal = shared(None if kept is None else kept.caller, found.principal)
        lifetime = lifetime_of(found.person, principal.expires_at)
        if changes == self._changes:
            ends_at = time.monotonic() + found.fresh_s
            self._remember(mark, principal, lifetime, asked_at=asked_at, ends_at=ends_at)
        return principal

    def _mark_of(self, token: bytes, resource: Resource | None = None) -> bytes:
        """The cache key of a token. It is not derived from the header, because the header's many spellings would fill
        the cache.

        An access token is valid for one resource, which follows in its cache key after a line break: no header has one.
        """
        if resource is not None:
            # guard: remembered-by-resource, remembered-apart
            token = b"%b\n%b %d" % (token, resource.url.encode(), resource.is_bound)
        return hashlib.blake2b(token, key=self._seal, digest_size=16).digest()

    def forget(self, key: KeyId) -> None:
        """Drop the cached results of this key, so that it is looked up again."""
        # guard: key-change-received
        self._drop({mark for mark, known in self._known.items() if key_of(known.caller) == key})

    def forget_tenant(self, tenant: TenantId) -> None:
        """Drop the cached results of all keys of this tenant, so that they are looked up again."""
        self.forget_issuers(tenant)
        self._drop({mark for mark, known in self._known.items() if tenant_of(known.caller) == tenant})

    def forget_issuers(self, tenant: TenantId) -> None:
        """Drop the cached issuers of a tenant whose catalog has changed."""
        self._sign_ins.forget()  # guard: sign-ins-after-a-change
        if self.people is not None:
            self.people.directory.forget(tenant)

    def forget_all(self) -> None:
        """Drop all cached results, because a change may have been missed."""
        self._drop(set(self._known))

    async def still_valid(self, principal: Principal) -> bool:
        """True if the credential of a principal is valid now and unchanged; a stored key is looked up, never cached.

        Raises:
            DatabaseUnavailable: the key cannot be looked up now.
        """
        found = (await self._finder.find([principal.key])).get(principal.key)
        is_stored = found is not None and lifetime_of(found[0], principal.expires_at) > 0 and is_same(principal, *found)
        # guard: still-valid-introspection
        if is_stored and (self.people is None or await self.people.is_active(principal)):
            return True
        self.forget(principal.key)
        return False

    async def principal_of(self, key: KeyId) -> Principal | None:
        """Return the principal of a key that is valid now; None if it is deleted, expired or revoked.

        Raises:
            DatabaseUnavailable: the key cannot be looked up now.
        """
        found = (await self._finder.find([key])).get(key)
        return None if found is None or lifetime_of(found[0]) <= 0 else principal_of(*found)

    async def has_ended(self, key: KeyId) -> bool:
        """True if this key is deleted, expired or revoked, rather than changed; raises like `principal_of`."""
        return await self.principal_of(key) is None

    async def _find(self, token: bytes, mark: bytes) -> Caller:
        text = token.decode("ascii", "replace")
        wanted = key_id_of(text)
        if wanted is None:
            self._note(None, "unknown")
            raise _refusal()
        changes, kept = self._changes, self._known.get(mark)
        asked_at = time.monotonic()
        is_kept = kept is not None and kept.kept_until > asked_at
        along = self._due_for_renewal(asked_at)
        every = await self._finder.find({wanted, *along.values()}, hurried=is_kept)
        for other, key_id in along.items():
            self._renew(other, every.get(key_id), asked_at=asked_at)
        return self._check_key(text, mark, every.get(wanted), changes=changes, asked_at=asked_at)

    async def _find_batched(self, token: bytes | None, address: str) -> Caller:
        """Return the caller of a credential from a suspect address, after the lookup of its batch."""
        text = "" if token is None else token.decode("ascii", "replace")
        changes, asked_at = self._changes, time.monotonic()
        found = await self._batched.find(key_id_of(text), address)
        mark = b"" if found is None or token is None else self._mark_of(token)
        return self._check_key(text, mark, found, changes=changes, asked_at=asked_at)

    def _check_key(
        self, text: str, mark: bytes, found: tuple[Key, str] | None, *, changes: int, asked_at: float
    ) -> Principal:
        """Return the principal of a key found by its id; refuse a wrong or invalid key after the same work."""
        kept, wanted = self._known.pop(mark, None), key_id_of(text)  # a refused token no longer bypasses the batches
        secret = self.digests.match(text, None if found is None else found[0])
        if found is None or secret is None or found[0].id != wanted:  # guard: key-digest
            self._note(found, "wrong")
            raise _refusal()
        key, slug = found
        lifetime = lifetime_of(key, secret.ends_at)
        if lifetime <= 0:
            self._note(found, "ended")
            raise _refusal()  # guard: key-constant-answer
        self.digests.note_use(key, secret, text)
        principal = shared(None if kept is None else kept.caller, principal_of(key, slug, secret))
        if changes == self._changes:  # no result was dropped while the key was being read
            self._remember(mark, principal, lifetime, asked_at=asked_at)
        return principal

    def _note(self, found: tuple[Key, str] | None, reason: str) -> None:
        """Note a failed authentication with a known key. For an unknown key, the same work is done without an entry."""
        tenant, key = (TenantId(""), "") if found is None else (found[0].tenant, found[0].id)
        note_sign_in(self.refusals, tenant, f"key:{key}", reason)

    def _due_for_renewal(self, now: float) -> dict[bytes, KeyId]:
        """Return results in use that expire soon or have expired, by mark, so that the current lookup renews them as
        well.

        Each result is returned once, regardless of the outcome of the lookup. Results that were read together expire
        together, so expired results are included.
        """
        along: dict[bytes, KeyId] = {}
        while self._renewable and self._renewable[0][0] <= now - PREFETCH_AGE_S and len(along) < MAX_RENEWALS:
            asked_at, mark = self._renewable.popleft()
            known = self._known.get(mark)
            if known is None or known.asked_at != asked_at or not known.is_used or known.kept_until <= now:
                continue
            if (key := key_of(known.caller)) is not None:
                along[mark] = key
        return along

    def _renew(self, mark: bytes, found: tuple[Key, str] | None, *, asked_at: float) -> None:
        """Renew the result if its key is unchanged; otherwise drop it, so that the next use makes a full check."""
        known = self._known.get(mark)
        # removed or renewed since the lookup began
        if known is None or known.asked_at >= asked_at:  # guard: key-taken-along-older
            return
        again = None if found is None or not isinstance(known.caller, Principal) else renewed(known.caller, *found)
        if found is None or again is None:
            del self._known[mark]
            return
        self.digests.note_use(found[0], again.secret)
        self._remember(mark, again.principal, again.lifetime, asked_at=asked_at, ends_at=known.ends_at)

    def _remember(
        self, mark: bytes, caller: Caller, lifetime: float = STALE_S, *, asked_at: float, ends_at: float = math.inf
    ) -> None:
        self._known.pop(mark, None)  # keeps the results in the order of their lookups
        while len(self._known) >= MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        lifetime = min(lifetime, ends_at - asked_at)  # guard: remembered-introspection
        until, kept_until = asked_at + min(lifetime, REMEMBERED_S), asked_at + min(lifetime, STALE_S)
        self._known[mark] = RememberedCaller(caller, asked_at, until, kept_until, ends_at)
        self._renewable.append((asked_at, mark))

    def _drop(self, marks: set[bytes]) -> None:
        self._changes += 1
        # running lookups may have read the state before the change
        self._turns.forget()  # guard: key-lookups-after-a-change
        self._sign_ins.forget()  # guard: sign-ins-after-a-denial
        for mark in marks:
            del self._known[mark]


def _refusal() -> Unauthenticated:
    return Unauthenticated(REFUSED)
