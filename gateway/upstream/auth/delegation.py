"""Per-caller credentials: an assertion, an exchanged token, or a token of the caller's connected account.

The caller's token is sent only to the token endpoint of the issuer that signed it. If the gateway itself issued the
token, the provider's token from the sign-in is exchanged instead.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

from gateway.domain.credentials import AccountTerms, SignedAssertion, TokenExchange
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.tenancy.principals import InboundToken, Principal
from gateway.errors import CredentialMissing
from gateway.upstream.auth.assertions import AssertionSigner
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.auth.token_endpoint import TokenRequest, token_exchange

FindSubjectToken: TypeAlias = Callable[[Principal], Awaitable[InboundToken | None]]
"""Returns the token that an issuer of the tenant issued for a caller; None if there is none."""


class AccountTokens(Protocol):
    """Access tokens of the accounts that users have connected."""

    async def obtain(self, principal: Principal, named: NamedCredential, terms: AccountTerms) -> str:
        """Return the access token of the caller's account.

        Raises:
            AccountRequired: the caller has to connect an account, or to connect it again.
            TokenRefused, UpstreamError, Unavailable: the account's token cannot be refreshed now.
        """
        ...

    async def renew(self, principal: Principal, named: NamedCredential, terms: AccountTerms, refused: str) -> str:
        """Return another access token after the upstream refused this one; raises the same errors as `obtain`."""
        ...


class TokenAudiences(Protocol):
    """The audiences at which the gateway accepts access tokens."""

    async def include(self, principal: Principal, text: str) -> bool:
        """True if a text is such an audience, or a JWT for one of them; raises `Unavailable` if that is unknown."""
        ...

    async def accept_opaque(self, principal: Principal, token: str, terms: TokenExchange | AccountTerms) -> bool:
        """True if an opaque token of these terms is for such an audience; raises `Unavailable` if that is unknown."""
        ...


class Delegations:
    """Resolves credentials with a delegation to the credential of one caller."""

    def __init__(
        self,
        tokens: Tokens,
        signer: AssertionSigner,
        subject_token: FindSubjectToken,
        accounts: AccountTokens,
        *,
        own_audiences: TokenAudiences,
    ) -> None:
        self._tokens = tokens
        self._signer = signer
        self._subject_token = subject_token
        self._accounts = accounts
        self._own_audiences = own_audiences

    async def resolve(self, named: NamedCredential, principal: Principal, action: tuple[str, str]) -> NamedCredential:
        """Return the credential of this caller; a shared credential is returned unchanged.

        `action` is the kind of the call, and the name of its primitive.

        Raises:
            CredentialMissing: the caller has no access token of the issuer, or the token is valid at the gateway.
            AccountRequired: the caller has to connect an account first.
            TokenRefused, UpstreamError: the issuer returned no token in exchange.
        """
        terms = named.delegation
        if terms is None:
            return named
        if isinstance(terms, SignedAssertion):
            value = self._signer.sign(principal, audience=terms.audience, action=action)
            # pools connections per caller: each assertion is new, so its own digest would never match
            digest = digest_of((named.name, terms.audience, principal.tenant, principal.subject))
            return replace(named, credential=Credential(value=value), delegation=None, digest=digest)
        requested = (terms.audience,) if isinstance(terms, TokenExchange) else [text for _, text in terms.parameters]
        for text in filter(None, requested):
            await self._check_audience(named, principal, text)  # guard: delegated-for-gateway-stored
        if isinstance(terms, AccountTerms):
            value = await self._accounts.obtain(principal, named, terms)
        else:
            value = await self._exchange(named, terms, principal)
        return await self._with_token(named, terms, principal, value)

    async def forget(self, named: NamedCredential, principal: Principal, refused: Credential) -> None:
        """Drop a cached token after the upstream refused it."""
        if isinstance(named.delegation, TokenExchange):
            wanted = _exchange_request(named, named.delegation, await self._subject_token(principal))
            await self._tokens.drop(principal.tenant, f"credential:{named.name}", wanted, refused.value)

    async def renew(self, named: NamedCredential, principal: Principal, refused: Credential) -> NamedCredential | None:
        """Drop the refused token, and return the credential with a new token of the connected account.

        None for other kinds of delegation: their next call obtains a new token.

        Raises:
            AccountRequired: the account has no other token; the caller has to connect it again.
            TokenRefused, UpstreamError, Unavailable: the account's token cannot be refreshed now.
        """
        if isinstance(named.delegation, AccountTerms):
            value = await self._accounts.renew(principal, named, named.delegation, refused.value)
            return await self._with_token(named, named.delegation, principal, value)
        await self.forget(named, principal, refused)
        return None

    async def _exchange(self, named: NamedCredential, terms: TokenExchange, principal: Principal) -> str:
        subject = await self._subject_token(principal)
        wanted = _exchange_request(named, terms, subject)
        token = await self._tokens.obtain(principal.tenant, f"credential:{named.name}", wanted)
        if subject is not None and token.value == subject.value:  # guard: exchange-other-token
            raise CredentialMissing(
                f"The issuer {terms.issuer_name!r} returned the caller's own token in exchange, which no upstream may"
                f" receive; give the credential {named.name!r} the audience of its upstream."
            )
        return token.value

    async def _with_token(
        self, named: NamedCredential, terms: TokenExchange | AccountTerms, principal: Principal, token: str
    ) -> NamedCredential:
        await self._check_audience(named, principal, token)  # guard: delegated-token-for-gateway
        if await self._own_audiences.accept_opaque(principal, token, terms):  # guard: delegated-opaque-for-gateway
            await self._refuse_upstreams(named, principal)
        return replace(named, credential=Credential(value=token), delegation=None)

    async def _check_audience(self, named: NamedCredential, principal: Principal, text: str) -> None:
        """Refuse an audience of the gateway, or a token for it, unless the gateway is the only recipient."""
        if await self._own_audiences.include(principal, text):
            await self._refuse_upstreams(named, principal)

    async def _refuse_upstreams(self, named: NamedCredential, principal: Principal) -> None:
        for origin in named.origins:
            if not await self._own_audiences.include(principal, origin):
                raise CredentialMissing(
                    f"The credential {named.name!r} would send a token that is valid at the gateway itself, which no"
                    " upstream may receive; give it the audience of its upstream."
                )


def _exchange_request(named: NamedCredential, terms: TokenExchange, token: InboundToken | None) -> TokenRequest:
    if token is None:
        raise CredentialMissing(
            f"The credential {named.name!r} acts for the person who calls, so the call needs an access token of the"
            f" issuer {terms.issuer_name!r}; a call with a key has none, nor does a call that continues after its "
            f"person has left."
        )
    if token.issuer != terms.issuer:  # guard: exchange-issuer
        raise CredentialMissing(
            f"The credential {named.name!r} acts for people of the issuer {terms.issuer_name!r}, and the caller's token"
            " is of another one; if this issuer was deleted and created again, store the credential again."
        )
    client = Credential(username=terms.client_id, value=named.credential.value)
    return token_exchange(terms, named.name, client, token.value)
