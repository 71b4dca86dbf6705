"""The pages for people: built from the catalog, the runtime, and the keys of their cookies and forms."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute

from gateway.app.infrastructure import Infrastructure
from gateway.app.runtime import Runtime
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.identity.oauth.relying_party import RelyingParty
from gateway.identity.oauth.sign_in import SignInFlow
from gateway.settings import Settings
from gateway.web.console import sessions as console_sessions
from gateway.web.console.endpoint import ApprovalPages
from gateway.web.html.documents import style_route
from gateway.web.people import sessions as people_sessions
from gateway.web.people.sessions import PersonSessions
from gateway.web.people.sign_in import PENDING_PURPOSE, SignInPages
from gateway.web.people.tenants import TenantLookup


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPages:
    """The routes of all pages for people, and the pools that bound their requests."""

    routes: Sequence[BaseRoute]
    pools: tuple[FairSlotPool, ...]


def build_pages(
    infrastructure: Infrastructure, catalog: CatalogContext, runtime: Runtime, settings: Settings
) -> PublicPages:
    """Build the pages of approvals, and of sign-in at the tenants' providers."""
    console_keys = catalog.sealer.derive_all(console_sessions.SESSION_PURPOSE)
    approvals = ApprovalPages(catalog, runtime.credentials, runtime.stores.nonces, keys=console_keys)
    people = _build_sign_in(infrastructure, catalog, runtime, settings)
    routes = (style_route(), *approvals.routes, *people.routes)
    return PublicPages(routes=routes, pools=(approvals.places, people.places))


def _build_sign_in(
    infrastructure: Infrastructure, catalog: CatalogContext, runtime: Runtime, settings: Settings
) -> SignInPages:
    nonces, cipher = runtime.stores.nonces, infrastructure.cipher

    async def use_once(tenant: TenantId, named: str, for_s: int) -> bool:
        return await nonces.use(tenant, named, for_s=for_s)

    provider = RelyingParty(infrastructure.upstream, runtime.people.keys)
    flow = SignInFlow(catalog, provider, use_once, infrastructure.refusals)
    tenants = TenantLookup(
        runtime.credentials, runtime.people.directory, public_url=settings.public_url, rate=settings.auth_failure_rate
    )
    sessions = PersonSessions(cipher.derive_all(people_sessions.SESSION_PURPOSE), catalog)
    return SignInPages(tenants, flow, sessions, keys=cipher.derive_all(PENDING_PURPOSE))
