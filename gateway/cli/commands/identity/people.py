"""`gateway person`, `consent`, `grant` and `account`: people who signed in, and what they permitted and connected."""

from dataclasses import replace

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.item_commands import add_action, add_delete
from gateway.cli.kinds.records import record_group
from gateway.cli.object_names import naming_by_id
from gateway.kinds.people import ACCOUNT, CONSENT, GRANT, PERSON

_NAMES = naming_by_id(PERSON, metavar="PERSON")


def _find_person(context: AdminContext, name: str) -> str:
    """Return the id or subject of a person; a subject need not have signed in yet."""
    return name if ":" in name else _NAMES.find(context, name)


_BY_PERSON = replace(_NAMES, find=_find_person)
_DENY = """Refuse a person from now on, with every token and every key of the same subject.

PERSON is an id, a name, or a subject such as corp:ada, also of a person who has not signed in. Keys of other subjects
that the person made stay valid, and are named; `gateway key revoke` ends one.
"""
_REVOKE = (
    "Refuse the tokens of a grant everywhere within five seconds; the consent stays. On a terminal, it asks first."
)

person = record_group(
    PERSON, "List, show, deny and allow people who signed in with an access token.", naming=_BY_PERSON
)
add_action(person, "deny", _DENY, naming=_BY_PERSON)
add_action(person, "allow", "Admit a denied person again.", naming=_BY_PERSON)

consent = record_group(CONSENT, "List, show and revoke the consents of people to clients.")
add_delete(
    consent,
    CONSENT.plural,
    "Delete a consent, and revoke the grants of its client; the person is asked again.",
    naming=naming_by_id(CONSENT),
    verb="revoke",
)

grant = record_group(GRANT, "List, show and revoke the grants of people to clients.")
add_action(grant, "revoke", _REVOKE, naming=naming_by_id(GRANT), result="revoked")

account = record_group(ACCOUNT, "List, show and disconnect the accounts of users at upstreams.")
add_delete(
    account,
    ACCOUNT.plural,
    "Delete an account and its tokens, and revoke them at the upstream if it can; the user can connect again.",
    naming=naming_by_id(ACCOUNT),
    verb="disconnect",
)
