"""Doctor check of sign-in and accounts: the URL under which people, providers and upstreams reach the gateway."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import anyio

from gateway.catalog.doctor.handler_checks import all_tenants
from gateway.catalog.doctor.limits import MAX_EXAMINED_CREDENTIALS, MAX_EXAMINED_ISSUERS, MAX_NAMED, TIMEOUT_S
from gateway.domain.credentials import CredentialKind
from gateway.domain.findings import Finding, Verdict, fine, list_names, warning
from gateway.errors import GatewayError
from gateway.store.engine import Store
from gateway.store.identity import issuers
from gateway.store.kinds.credentials import CREDENTIALS

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_REMEDY = (
    "set GATEWAY_PUBLIC_URL to the https URL of the gateway; `gateway --tenant SLUG issuer show NAME` and `credential"
    " show NAME` then print the redirect URI to register at the provider"
)
_ANY_LOOPBACK = "the audience of access tokens follows the Host header, so tokens for any loopback URL are accepted"
_ISSUER_REMEDY = (
    "set the client of the issuer: `gateway --tenant SLUG issuer update NAME --client-id ID --secret env:NAME`; holders"
    " of keys connect accounts without it"
)


async def check_sign_in(store: Store, public_url: str | None) -> Finding:
    """Finding on tenants that accept access tokens or whose people sign in, if the gateway's own URL is unfit.

    Cookies, links, redirect URIs, issuer and audiences of tokens are derived from this URL. A further warning names
    issuers whose people cannot connect accounts. After 15 s, the remaining tenants are skipped, and the finding reports
    the timeout.
    """
    examined, signing, accepting, stranded = 0, list[str](), list[str](), list[str]()
    try:
        with anyio.move_on_after(TIMEOUT_S) as scope:
            for tenant in await all_tenants(store):
                async with store.transaction(tenant.id) as db:
                    found = await issuers.page(tenant.id, db, after=None, limit=MAX_EXAMINED_ISSUERS)
                    stored = await CREDENTIALS.page(tenant.id, db, after=None, limit=MAX_EXAMINED_CREDENTIALS)
                has_accounts = any(each.kind is CredentialKind.USER for each in stored)
                is_signing = any(each.enabled and each.sign_in for each in found)
                signing += [tenant.slug] if is_signing or has_accounts else []
                accepting += [tenant.slug] if any(each.enabled for each in found) else []
                if has_accounts:
                    stranded += [f"{tenant.slug}/{each.name}" for each in found if each.enabled and not each.sign_in]
                examined += 1
    except GatewayError as error:
        return warning("sign_in", f"not examined: {error.message}", "fix the findings on the database first")
    scope_note = f"{examined} examined" + (", the rest skipped after a timeout" if scope.cancelled_caught else "")
    if accepting and not signing and public_url is None:
        named = f"tenants {list_names(accepting, limit=MAX_NAMED)} ({scope_note})"
        return warning("sign_in", f"GATEWAY_PUBLIC_URL is not set: {_ANY_LOOPBACK}; {named}", _REMEDY)
    finding = _to_finding(signing, public_url, scope_note)
    if stranded and finding.status is Verdict.OK:
        names = list_names(stranded, limit=MAX_NAMED)
        detail = (
            f"people of these issuers cannot connect accounts, because they have no sign_in: {names} ({scope_note})"
        )
        return warning("sign_in", detail, _ISSUER_REMEDY)
    return finding


def _to_finding(signing: Sequence[str], public_url: str | None, scope_note: str) -> Finding:
    if not signing:
        return fine("sign_in", f"no tenant's people sign in at a provider or connect accounts ({scope_note})")
    affected = f"people of {list_names(signing, limit=MAX_NAMED)} sign in or connect accounts ({scope_note})"
    if public_url is None:
        return warning("sign_in", f"GATEWAY_PUBLIC_URL is not set, and {affected}", _REMEDY)
    parts = urlsplit(public_url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        return warning("sign_in", f"GATEWAY_PUBLIC_URL is not https, and {affected}", _REMEDY)
    return fine("sign_in", affected)
