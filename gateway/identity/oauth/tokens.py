"""Issue of tokens under a grant, for an authorization code or a rotating refresh token.

Each issue checks the sign-in and applies the issuer's rules. Reuse of a replaced refresh token revokes the grant. But
within ten seconds, the previous token returns the same successor again. A bound token has no effect without its key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from gateway.catalog.identity.grants import end_grant, find_grant, find_holder, prolonged, record_use
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ProofRefused, SignInRefused
from gateway.domain.tenancy.grant_secrets import Presented, RefreshTokenState, new_refresh, rotated
from gateway.domain.tenancy.grants import Grant, GrantSecrets, GrantUse
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.domain.tenancy.sign_ins import SignedInPerson
from gateway.identity.issued_tokens import IssuedTokens
from gateway.identity.limits import MAX_LIFETIME_S
from gateway.identity.oauth.limits import EARLY_S
from gateway.identity.oauth.provider_checks import ProviderChecks
from gateway.identity.oauth.relying_party import client_of
from gateway.identity.refusal_trail import RefusalTrail, note_sign_in

ROTATION_PURPOSE = "refresh token rotation"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """Tokens of one token response."""

    access_token: str = field(repr=False)
    life_s: int
    """The lifetime for the client (`expires_in`), a little less than that in the token."""
    refresh_token: str = field(repr=False)
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableGrant:
    """A grant with its stored digests, and the presented refresh token (None for a code).

    `thumbprint` is that of a key that the client proved. The access token is bound to it; if `binds_grant`, so are the
    grant and its next refresh tokens (RFC 9449 section 5).
    """

    grant: Grant
    stored: GrantSecrets
    presented: Presented | None = None
    thumbprint: str | None = None
    binds_grant: bool = False


class TokenIssue:
    """Issues tokens; `rotation_keys` derive the successors of refresh tokens, the current key first."""

    def __init__(
        self,
        catalog: CatalogContext,
        checks: ProviderChecks,
        issued: IssuedTokens,
        refusals: RefusalTrail,
        *,
        rotation_keys: Sequence[bytes],
    ) -> None:
        self._catalog = catalog
        self._checks = checks
        self._issued = issued
        self._refusals = refusals
        self._rotation_keys = rotation_keys

    async def look_up(
        self, tenant: TenantId, presented: Presented, *, thumbprint: str | None, correlation_id: str
    ) -> UsableGrant | None:
        """Return the grant of a valid refresh token; None if the token is unknown, expired or revoked.

        A token that was already replaced revokes its grant. If the grant was bound from its first token, this needs a
        proof of its key (`thumbprint`): tokens alone are of no use to a thief. Of a grant that was bound later, a
        thief may have proved the key, and the token is then that of the victim.
        """
        found = await find_grant(tenant, self._catalog, presented.grant)
        if found is None or found[0].revoked_at is not None:  # guard: refresh-revoked
            return None
        grant, stored = found
        state, now = presented.state(stored), datetime.now(UTC)
        if state is RefreshTokenState.REUSED:  # guard: refresh-reuse
            if presented.is_bound and grant.thumbprint != thumbprint:  # guard: refresh-reuse-without-key
                return None
            await end_grant(tenant, self._catalog, grant, "refresh token used twice", correlation_id=correlation_id)
            return None
        if state is RefreshTokenState.UNKNOWN or min(grant.idle_ends_at, grant.ends_at) <= now:  # guard: refresh-end
            return None
        return UsableGrant(grant=grant, stored=stored, presented=presented)

    async def issue(
        self, found: TenantIssuers, usable: UsableGrant, *, issuer: str, correlation_id: str
    ) -> TokenSet | None:
        """Issue the next tokens of a grant; None if its refresh token was replaced concurrently.

        Raises:
            SignInRefused: the person is denied, unknown to the provider, or admitted by no rule, or the grant is bound
                to another key.
            ProofRefused: the issuer demands bound tokens, and the client proved no key.
            Unavailable: the provider is unavailable.
            AuditUnavailable: the first tokens could not be recorded.
        """
        tenant, grant, stored, presented = found.tenant, usable.grant, usable.stored, usable.presented
        if grant.thumbprint not in (None, usable.thumbprint):  # guard: refresh-bound
            raise SignInRefused("The refresh token is bound to a key of the client; send a DPoP proof of this key.")
        holder = await find_holder(tenant, self._catalog, found, grant)
        if holder.issuer.requires_dpop and usable.thumbprint is None:  # guard: grant-dpop-required
            raise ProofRefused("this tenant demands bound tokens: send a DPoP proof to the token endpoint (RFC 9449)")
        holder = await self._checks.check(tenant, holder)
        self._check_rules(tenant, grant, holder)
        following, renewed = new_refresh(grant.id, is_bound=usable.binds_grant), None
        if presented is not None:
            derived = presented.next(self._rotation_keys, stored)
            if derived is None:
                return None
            following = derived
        if presented is None or presented.state(stored) is RefreshTokenState.CURRENT:
            renewed = rotated(stored, following)
        used = prolonged(grant, client_of(holder.issuer))
        if usable.binds_grant:
            used = replace(used, thumbprint=usable.thumbprint)
        use = GrantUse(grant=used, renewed=renewed, before=stored.refresh)
        if not await record_use(tenant, self._catalog, holder.person, use, correlation_id=correlation_id):
            return await self._issue_retry(found, usable, issuer=issuer, correlation_id=correlation_id)
        left_s = int((used.ends_at - datetime.now(UTC)).total_seconds())
        life_s = max(1, min(MAX_LIFETIME_S, holder.issuer.max_lifetime_s, left_s))
        person, bound = holder.sign_in.claims, usable.thumbprint
        granted = replace(used, scopes=holder.issuer.granted_scopes(person, used.scopes))
        text = self._issued.sign(granted, person, holder.issuer, issuer=issuer, life_s=life_s, thumbprint=bound)
        stated_s = max(1, life_s - min(EARLY_S, life_s // 2))
        return TokenSet(access_token=text, life_s=stated_s, refresh_token=following.text, scopes=granted.scopes)

    async def _issue_retry(
        self, found: TenantIssuers, usable: UsableGrant, *, issuer: str, correlation_id: str
    ) -> TokenSet | None:
        """Issue tokens as a retry, after a concurrent request has used the same refresh token."""
        if usable.presented is None:
            return None
        now = await self.look_up(
            found.tenant, usable.presented, thumbprint=usable.thumbprint, correlation_id=correlation_id
        )
        if now is None or usable.presented.state(now.stored) is not RefreshTokenState.RETRIED:
            return None
        now = replace(now, thumbprint=usable.thumbprint, binds_grant=usable.binds_grant)
        return await self.issue(found, now, issuer=issuer, correlation_id=correlation_id)

    def _check_rules(self, tenant: TenantId, grant: Grant, holder: SignedInPerson) -> None:
        # guard: grant-rules
        if not holder.issuer.admits_client(holder.sign_in.claims, grant.profile, grant.scopes):
            note_sign_in(self._refusals, tenant, f"user:{holder.person.principal}", "rules")
            raise SignInRefused("No rule of the issuer admits the person here; ask the tenant's administrator.")
