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
    one="consent", path="/tenants/{t}/consents", key="id", shown=ConsentShown, show=each(ConsentShown.of)
)
_GRANT: Noun[Grant] = Noun(
    one="grant", path="/tenants/{t}/grants", key="id", shown=GrantShown, show=each(GrantShown.of)
)


async def revoke_grant(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Refuse the tokens of a grant everywhere within five seconds; it stays in the list for a day."""
    revoke = partial(grants.revoke_grant, call.tenant, admin.catalog, call.path["id"])
    return await _GRANT.answer(admin, call, await revoke(by=call.by, expected=call.expected))


ENDPOINTS = (
    _CONSENT.lists(
        "List the consents of people to clients.",
        consents.page_consents,
        CONSENTS,
        ConsentListQuery,
        ConsentPage,
    ),
    _CONSENT.shows("Show a consent.", consents.get_consent),
    _CONSENT.deletes("Revoke a consent, and the grants of its client.", consents.revoke_consent),
    _GRANT.lists(
        "List the grants under which tokens were issued.", grants.page_grants, GRANTS, GrantListQuery, GrantPage
    ),
    _GRANT.shows("Show a grant.", grants.get_grant),
    _GRANT.acts("revoke", revoke_grant),
)
