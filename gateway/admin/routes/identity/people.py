"""Endpoints of people who signed in with an access token."""

from collections.abc import Sequence
from functools import partial

from gateway.admin.crud import Noun
from gateway.admin.endpoint import AdminDependencies, AdminResponse, Plain
from gateway.admin.list_search import PEOPLE
from gateway.admin.requests.people import PersonListQuery
from gateway.admin.responses.people import PersonPage, PersonShown
from gateway.catalog.identity import people
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Key


async def _show(admin: AdminDependencies, tenant: TenantId, found: Sequence[Key]) -> Sequence[PersonShown]:
    keys = await people.keys_made(tenant, admin.catalog, [person.subject for person in found])
    return [PersonShown.of(person, keys) for person in found]


_NOUN = Noun(singular="person", path="/tenants/{t}/people", key="id", shown=PersonShown, show=_show)


async def deny_person(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Deny a person, by id or subject: every token of the person and every key of the same subject is refused.

    The subject of a person who has not signed in is accepted too. Keys of other subjects that the person made stay
    valid; `keys_made` has their ids.
    """
    deny = partial(people.deny_person, call.tenant, admin.catalog, call.path["id"])
    return await _NOUN.respond(admin, call, await deny(by=call.by, expected=call.expected))


async def allow_person(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Allow a denied person again, by id or subject, with the keys of the same subject."""
    allow = partial(people.allow_person, call.tenant, admin.catalog, call.path["id"])
    return await _NOUN.respond(admin, call, await allow(by=call.by, expected=call.expected))


ENDPOINTS = (
    _NOUN.list_route(
        "List the people who signed in with an access token.",
        people.page_people,
        PEOPLE,
        PersonListQuery,
        PersonPage,
    ),
    _NOUN.show_route("Show a person who signed in with an access token, by id or subject.", people.get_person),
    _NOUN.action_route("deny", deny_person),
    _NOUN.action_route("allow", allow_person),
)
