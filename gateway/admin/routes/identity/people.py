"""Endpoints of people who signed in, their consents and grants, and the accounts that they connected."""

from gateway.admin.endpoint import of_installation
from gateway.admin.records import RecordEndpoints
from gateway.catalog.identity import accounts, consents, grants, people
from gateway.kinds.people import ACCOUNT, CONSENT, GRANT, PERSON

_DENY = "Deny a person, by id or subject: every token of the person and every key of the same subject is refused."
_PERSON = RecordEndpoints(record=PERSON, page=people.page_people, get=people.get_person)
_CONSENT = RecordEndpoints(record=CONSENT, page=consents.page_consents, get=consents.get_consent)
_GRANT = RecordEndpoints(record=GRANT, page=grants.page_grants, get=grants.get_grant)
_ACCOUNT = RecordEndpoints(record=ACCOUNT, page=accounts.page_accounts, get=accounts.get_account)

_PEOPLE = (
    *_PERSON.routes(),
    _PERSON.noun.act_route("deny", _DENY, people.deny_person),
    _PERSON.noun.act_route(
        "allow",
        "Allow a denied person again, by id or subject, with the keys of the same subject.",
        people.allow_person,
    ),
)

ENDPOINTS = (
    *_PEOPLE,
    *(of_installation(one, {"people": "installation_people", "person": "installation_person"}) for one in _PEOPLE),
    *_CONSENT.routes(),
    _CONSENT.noun.delete_route("Revoke a consent, and the grants of its client.", consents.revoke_consent),
    *_GRANT.routes(),
    _GRANT.noun.act_route(
        "revoke",
        "Refuse the tokens of a grant everywhere within five seconds; it stays in the list for a day.",
        grants.revoke_grant,
    ),
    *_ACCOUNT.routes(),
    _ACCOUNT.noun.delete_route(
        "Disconnect an account, and revoke its tokens at the upstream if it can.", accounts.disconnect_account
    ),
)
