"""Endpoints of people who signed in with an access token."""

from functools import partial

from gateway.admin.crud import Noun, each
from gateway.admin.endpoint import AdminDependencies, AdminResponse, Plain
from gateway.admin.list_search import PEOPLE
from gateway.admin.requests.people import PersonListQuery
from gateway.admin.responses.people import PersonPage, PersonShown
from gateway.catalog.identity import people

_NOUN = Noun(singular="person", path="/tenants/{t}/people", key="id", shown=PersonShown, show=each(PersonShown.of))


async def deny_person(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Deny a person, by id or subject: every token of the person and every key of the same subject is refused.

    The subject of a person who has not signed in is accepted too.
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
