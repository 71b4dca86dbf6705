"""Authorization code flow that connects a user's account at an upstream, within one browser.

The pending connection is stored in an encrypted browser cookie, so any replica can complete it. It is bound to the user
who started it, to the credential with its terms, and to a single-use state.
"""

import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

from gateway.catalog.credentials import terms_of
from gateway.catalog.identity.accounts import connect_account, open_client
from gateway.catalog.transaction import CatalogContext
from gateway.domain.credentials import AccountTerms
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.refusals import SignInExpired, SignInFailed
from gateway.domain.tenancy.accounts import AccountOwner, UserAccount
from gateway.errors import NotFound, TokenRefused
from gateway.identity.oauth.account_tokens import AccountLinks, tokens_of
from gateway.identity.oauth.limits import PENDING_S
from gateway.identity.oauth.relying_party import challenge_of
from gateway.identity.oauth.sign_in import NAMED, AuthorizationResponse, UseOnce
from gateway.upstream.auth.token_endpoint import code_exchange, fetch_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAccount:
    """A connection that was started in a browser and is not completed yet."""

    tenant: TenantId
    owner: KeyId
    credential: str
    terms: str
    state: str
    verifier: str
    redirect_uri: str


class AccountFlow:
    """Starts and completes connections of accounts."""

    def __init__(self, catalog: CatalogContext, links: AccountLinks, use_once: UseOnce) -> None:
        self._catalog = catalog
        self.links = links
        self._use_once = use_once

    def begin(self, owner: AccountOwner, slug: str, named: NamedCredential) -> tuple[str, PendingAccount]:
        """Return the authorization URL, and the pending connection to store in the browser."""
        terms, pending = (
            _terms(named),
            PendingAccount(
                tenant=owner.tenant,
                owner=owner.id,
                credential=named.id,
                terms=terms_of(named) or "",
                state=secrets.token_urlsafe(32),
                verifier=secrets.token_urlsafe(48),
                redirect_uri=self.links.callback(slug, named.name),
            ),
        )
        parameters = {
            **dict(terms.parameters),
            "response_type": "code",
            "client_id": terms.client_id,
            "redirect_uri": pending.redirect_uri,
            **({"scope": " ".join(terms.scopes)} if terms.scopes else {}),
            "state": pending.state,
            "code_challenge": challenge_of(pending.verifier),
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in terms.authorization_url else "?"
        return f"{terms.authorization_url}{separator}{urlencode(parameters)}", pending

    async def finish(
        self,
        owner: AccountOwner,
        name: str,
        pending: PendingAccount | None,
        response: AuthorizationResponse,
        *,
        correlation_id: str,
    ) -> UserAccount:
        """Exchange the code of the response for tokens, and store the user's account.

        Raises:
            SignInExpired: another browser or user started the flow, it is completed, or the credential was changed.
            SignInFailed: the server refused, or the response is from another server.
            TokenRefused, UpstreamError: the server issued no tokens.
            Conflict, Forbidden, LimitExceeded: see `connect_account`.
        """
        # guard: account-state
        if pending is None or not hmac.compare_digest(pending.state.encode(), response.state.encode()):
            raise _expired()
        if (pending.tenant, pending.owner) != (owner.tenant, owner.id):  # guard: account-same-user
            raise _expired()
        named = await open_client(owner.tenant, self._catalog, name)
        if (pending.credential, pending.terms) != (named.id, terms_of(named)):  # guard: account-same-credential
            raise _expired()
        terms = _terms(named)
        _check_server(terms, response)
        if not await self._use_once(owner.tenant, f"account {pending.state}", PENDING_S):  # guard: account-once
            raise _expired()
        if response.code is None:
            why = response.error if response.error in NAMED else "no reason that can be shown"
            raise SignInFailed(f"The upstream's server did not connect your account ({why}); nothing was stored.")
        fields = {"code": response.code, "redirect_uri": pending.redirect_uri, "code_verifier": pending.verifier}
        client = Credential(username=terms.client_id, value=named.credential.value)
        try:
            given = await fetch_tokens(
                self._catalog.upstream, owner.tenant, code_exchange(named.name, terms.token_url, client, fields)
            )
        except TokenRefused as refused:
            raise SignInFailed(f"The upstream's server gave no tokens. {refused.message}") from None
        scopes = tuple(sorted(given.scopes or terms.scopes))
        return await connect_account(
            self._catalog, owner, named, tokens_of(given), scopes=scopes, correlation_id=correlation_id
        )


def _terms(named: NamedCredential) -> AccountTerms:
    if not isinstance(named.delegation, AccountTerms):
        raise NotFound("There is no such page.")
    return named.delegation


def _check_server(terms: AccountTerms, response: AuthorizationResponse) -> None:
    """Refuse a response of another authorization server (RFC 9207 section 2.4)."""
    is_other = response.issuer is not None and terms.server is not None and response.issuer != terms.server
    is_missing = response.issuer is None and terms.names_issuer
    if is_other or is_missing:  # guard: account-response-issuer
        raise SignInFailed("The response was not of the server at which the connection began; nothing was stored.")


def _expired() -> SignInExpired:
    return SignInExpired(
        "This connection was not begun by you in this browser, took more than ten minutes, or was used before. Nothing"
        " was stored; begin again, and allow cookies."
    )
