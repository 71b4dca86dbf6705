"""Assembly of the browser pages and the authorization server.

The keys for cookies, forms and sealed requests are derived from the gateway's cipher.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute

from gateway.app.infrastructure import Infrastructure
from gateway.app.runtime import Runtime
from gateway.catalog.identity.grants import has_grants
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.identity.oauth.account_flow import AccountFlow
from gateway.identity.oauth.account_tokens import LINK_PURPOSE, AccountLinks
from gateway.identity.oauth.client_documents import ClientDocuments, FindKnown
from gateway.identity.oauth.clients import ClientDirectory
from gateway.identity.oauth.provider_checks import ProviderChecks
from gateway.identity.oauth.relying_party import RelyingParty
from gateway.identity.oauth.requests import REQUEST_PURPOSE, SealedRequests
from gateway.identity.oauth.sign_in import SignInFlow
from gateway.identity.oauth.tokens import ROTATION_PURPOSE, TokenIssue
from gateway.protocol.authorization.endpoints import AuthorizationEndpoints
from gateway.protocol.authorization.request_grants import AuthorizationParts
from gateway.settings import Settings
from gateway.web.console import sessions as console_sessions
from gateway.web.console.endpoint import ApprovalPages
from gateway.web.console.sessions import ConsoleSessions
from gateway.web.html.documents import style_route
from gateway.web.people import sessions as people_sessions
from gateway.web.people.accounts import PENDING_ACCOUNT_PURPOSE, AccountPages
from gateway.web.people.approvals import PersonApprovalPages
from gateway.web.people.consent import ConsentPages
from gateway.web.people.sessions import PersonSessions
from gateway.web.people.sign_in import PENDING_PURPOSE, SignInPages
from gateway.web.people.tenant_page import KEY_COOKIE, KEY_SESSION_PURPOSE, PeoplePage
from gateway.web.people.tenants import TenantLookup
from gateway.web.people.visitors import start_route


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPages:
    """Routes of the browser pages and the authorization server, and the slot pools that limit their requests."""

    routes: Sequence[BaseRoute]
    pools: tuple[FairSlotPool, ...]


def build_pages(
    infrastructure: Infrastructure, catalog: CatalogContext, runtime: Runtime, settings: Settings
) -> PublicPages:
    """Build the approval, sign-in, consent and tenant pages, and the endpoints of the authorization server."""
    cipher, people = infrastructure.cipher, runtime.people
    console_keys = cipher.derive_all(console_sessions.SESSION_PURPOSE)
    approvals = ApprovalPages(catalog, runtime.credentials, runtime.stores.nonces, keys=console_keys)
    provider = RelyingParty(infrastructure.upstream, people.keys)
    checks = ProviderChecks(catalog, provider)
    sign_in_pages = _build_sign_in(infrastructure, catalog, runtime, settings, provider=provider)
    documents = ClientDocuments(infrastructure.upstream, _known_clients(catalog))
    clients = ClientDirectory(catalog, documents)
    requests = SealedRequests(cipher.derive_all(REQUEST_PURPOSE))
    person_approvals = PersonApprovalPages(catalog, sign_in_pages, checks)
    consent = ConsentPages(catalog, sign_in_pages, clients, checks, requests=requests)
    page_keys = cipher.derive_all(KEY_SESSION_PURPOSE)
    key_sessions = ConsoleSessions(
        page_keys, runtime.credentials, runtime.stores.nonces, scope=Scope.MCP, name=KEY_COOKIE
    )
    accounts = _build_accounts(infrastructure, catalog, runtime, sign_in_pages, key_sessions=key_sessions)
    tenant_page = PeoplePage(catalog, sign_in_pages, key_sessions, accounts)
    rotation_keys = cipher.derive_all(ROTATION_PURPOSE)
    tokens = TokenIssue(catalog, checks, people.issued, infrastructure.refusals, rotation_keys=rotation_keys)
    authorization_parts = AuthorizationParts(
        catalog=catalog, people=people, requests=requests, tokens=tokens, issued=people.issued
    )
    server = AuthorizationEndpoints(runtime.credentials, sign_in_pages, clients, authorization_parts)
    return PublicPages(
        routes=(
            style_route(),
            start_route(sign_in_pages.tenants),
            *approvals.routes,
            *sign_in_pages.routes,
            *person_approvals.routes,
            *tenant_page.routes,
            *consent.routes,
            *accounts.routes,
            *server.routes,
        ),
        pools=(approvals.slot_pool, sign_in_pages.slot_pool, *documents.slot_pools, server.slot_pool),
    )


def _known_clients(catalog: CatalogContext) -> FindKnown:
    async def is_known(tenant: TenantId, client: str) -> bool:
        return await has_grants(tenant, catalog, client)

    return is_known


def _build_accounts(
    infrastructure: Infrastructure,
    catalog: CatalogContext,
    runtime: Runtime,
    sign_in_pages: SignInPages,
    *,
    key_sessions: ConsoleSessions,
) -> AccountPages:
    nonces, cipher = runtime.stores.nonces, infrastructure.cipher

    async def use_once(tenant: TenantId, nonce: str, for_s: int) -> bool:
        return await nonces.use(tenant, nonce, for_s=for_s)

    links = AccountLinks(cipher.derive(LINK_PURPOSE), public_url=catalog.options.public_url)
    flow = AccountFlow(catalog, links, use_once)
    return AccountPages(
        catalog, sign_in_pages, key_sessions, flow, keys=tuple(cipher.derive_all(PENDING_ACCOUNT_PURPOSE))
    )


def _build_sign_in(
    infrastructure: Infrastructure,
    catalog: CatalogContext,
    runtime: Runtime,
    settings: Settings,
    *,
    provider: RelyingParty,
) -> SignInPages:
    nonces, cipher = runtime.stores.nonces, infrastructure.cipher

    async def use_once(tenant: TenantId, nonce: str, for_s: int) -> bool:
        return await nonces.use(tenant, nonce, for_s=for_s)

    flow = SignInFlow(catalog, provider, use_once, infrastructure.refusals)
    tenants = TenantLookup(
        runtime.credentials, runtime.people.directory, public_url=settings.public_url, rate=settings.auth_failure_rate
    )
    sessions = PersonSessions(cipher.derive_all(people_sessions.SESSION_PURPOSE), catalog)
    return SignInPages(tenants, flow, sessions, keys=cipher.derive_all(PENDING_PURPOSE))
