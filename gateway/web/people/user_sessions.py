"""Browser sessions of a tenant's users, who signed in at its provider or with a key: one protocol for both."""

from typing import Protocol

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.accounts import AccountOwner
from gateway.web.console.sessions import ConsoleSession, ConsoleSessions
from gateway.web.people.sessions import PersonSession, PersonSessions


class UserSession(Protocol):
    """The common facts of a session."""

    @property
    def tenant(self) -> TenantId:
        """The tenant."""
        ...

    @property
    def slug(self) -> str:
        """The slug of the tenant."""
        ...

    @property
    def owner(self) -> AccountOwner:
        """The user as the owner of accounts at upstreams."""
        ...

    @property
    def sign_out_path(self) -> str:
        """The path of the form that ends the session."""
        ...

    def admits(self, profile: str) -> bool:
        """True if the user may use the profile."""
        ...


Session = PersonSession | ConsoleSession


class UserSessions:
    """Form tokens and cookies of the sessions of both stores."""

    def __init__(self, people: PersonSessions, keys: ConsoleSessions) -> None:
        self._people = people
        self._keys = keys

    def form_token(self, session: Session, purpose: str) -> str:
        """Return the CSRF token of a session; that of a key's session is the same for all purposes."""
        if isinstance(session, PersonSession):
            return self._people.form_token(session, purpose)
        return self._keys.form_token(session)

    def cookie_of(self, session: Session) -> str:
        """Return the `Set-Cookie` header of a session; its idle time restarts."""
        return self._people.cookie_of(session) if isinstance(session, PersonSession) else self._keys.cookie_of(session)
