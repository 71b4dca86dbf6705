"""Records about people: those who signed in, their consents and grants, and their connected accounts."""

from gateway.domain.members.formats import NAME
from gateway.domain.tenancy.accounts import AccountState, UserAccount
from gateway.domain.tenancy.grants import Consent, Grant, GrantState
from gateway.domain.tenancy.sign_ins import Person
from gateway.kinds.kind import ListFilter
from gateway.kinds.record import Record, by_state, by_text

PERSON = Record(
    of=Person,
    name="person",
    id_prefix="sgn",
    known_by=("subject", "name"),
    plural="people",
    about="the people who signed in with an access token",
    one="a person who signed in with an access token, by id or subject",
    sorts=("name", "created_at"),
    texts=lambda one: (one.name, one.subject),
    filters={
        "denied": ListFilter(
            type=bool,
            about="Only people who are denied (true) or allowed (false).",
            value=lambda one: one.denied_at is not None,
        ),
        "issuer": by_text(
            "Only people of the issuer of this name.", lambda one: one.subject.partition(":")[0], form=NAME
        ),
    },
)

CONSENT = Record(
    of=Consent,
    name="consent",
    id_prefix="cns",
    known_by=("subject", "client_name", "client_id"),
    plural="consents",
    about="the consents of people to clients",
    one="a consent",
    texts=lambda one: (one.subject, one.client_name, one.client, one.redirect_host),
    filters={
        "subject": by_text("Only consents of the person with this subject.", lambda one: one.subject),
        "client": by_text("Only consents to the client with this id.", lambda one: one.client),
    },
)

GRANT = Record(
    of=Grant,
    name="grant",
    id_prefix="gnt",
    known_by=("subject", "client_name", "client_id"),
    plural="grants",
    about="the grants under which tokens were issued",
    one="a grant",
    texts=lambda one: (one.subject, one.client_name, one.client, one.resource),
    filters={
        "subject": by_text("Only grants of the person with this subject.", lambda one: one.subject),
        "client": by_text("Only grants of the client with this id.", lambda one: one.client),
        "state": by_state(GrantState, "Only grants in this state.", lambda one: one.state),
    },
)

ACCOUNT = Record(
    of=UserAccount,
    name="account",
    id_prefix="acc",
    known_by=("subject", "credential"),
    plural="accounts",
    about="the accounts that users have connected, without their tokens",
    one="an account, without its tokens",
    texts=lambda one: (one.subject, one.credential_name),
    filters={
        "subject": by_text("Only accounts of users with this subject.", lambda one: one.subject),
        "credential": by_text("Only accounts for the credential of this name.", lambda one: one.credential_name),
        "state": by_state(AccountState, "Only accounts in this state.", lambda one: one.state),
    },
)
