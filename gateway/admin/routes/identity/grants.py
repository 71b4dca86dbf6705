"""Endpoints of the consents and grants that people gave to clients."""

from functools import partial

from gateway.admin.crud import Noun, each
from gateway.admin.endpoint import AdminDependencies, AdminResponse, Plain
from gateway.admin.list_search import CONSENTS, GRANTS
from gateway.admin.requests.grants import ConsentListQuery, GrantListQuery
from gateway.admin.responses.grants import ConsentPage, ConsentShown, GrantPage, GrantShown
from gateway.catalog.identity import consents, grants
from gateway.domain.tenancy.grants import Consent, Grant

_CONSENT: Noun[Consent] = Noun(
    singular="consent", path="/tenants/{t}/consents", key="id", shown=ConsentShown, show=each(ConsentShown.of)
)
_GRANT: Noun[Grant] = Noun(
    singular="grant", path="/tenants/{t}/grants", key="id", shown=GrantShown, show=each(GrantShown.of)
)


async def revoke_grant(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Refuse the tokens of a grant everywhere within five seconds; it stays in the list for a day."""
    revoke = partial(grants.revoke_grant, call.tenant, admin.catalog, call.path["id"])
    return await _GRANT.respond(admin, call, await revoke(by=call.by, expected=call.expected))


ENDPOINTS = (
    _CONSENT.list_route(
        "List the consents of people to clients.",
        consents.page_consents,
        CONSENTS,
        ConsentListQuery,
        ConsentPage,
    ),
    _CONSENT.show_route("Show a consent.", consents.get_consent),
    _CONSENT.delete_route("Revoke a consent, and the grants of its client.", consents.revoke_consent),
    _GRANT.list_route(
        "List the grants under which tokens were issued.", grants.page_grants, GRANTS, GrantListQuery, GrantPage
    ),
    _GRANT.show_route("Show a grant.", grants.get_grant),
    _GRANT.action_route("revoke", revoke_grant),
)
