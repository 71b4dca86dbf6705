"""The Redis names of the parts of a session; every name begins with the namespace and the tenant.

A session has a record, a hash of mutable fields (`state`), one log per stream and the set of the streams' names
(`index`). It also has the set of its subscriptions, with their URIs. `Sessions.remove` deletes all parts together;
when the record expires, the subscriptions remain a little longer.
"""

import hashlib
from dataclasses import dataclass

from gateway.domain.identifiers import TenantId

STANDALONE = "g"
"""The stream that belongs to no request; a client follows it with GET."""


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The names of one session of one tenant."""

    namespace: str
    tenant: TenantId
    session: str

    @property
    def _prefix(self) -> str:
        return f"{self.namespace}:t:{self.tenant}:s:{self.session}"

    @property
    def record(self) -> str:
        """The record of the session; the session exists as long as its record."""
        return self._prefix

    @property
    def state(self) -> str:
        """The hash of mutable fields: log level, newest reader, its position, questions, running requests, updates."""
        return f"{self._prefix}:state"

    @property
    def index(self) -> str:
        """The set of the names of its streams."""
        return f"{self._prefix}:logs"

    @property
    def subscriptions(self) -> str:
        """The digests of its subscribed URIs."""
        return f"{self._prefix}:subscriptions"

    @property
    def uris(self) -> str:
        """Its subscribed URIs by digest, without those too long to be stored."""
        return f"{self._prefix}:uris"

    @property
    def logs(self) -> str:
        """The prefix of the names of all its logs."""
        return f"{self._prefix}:log:"

    @property
    def wake(self) -> str:
        """The channel that notifies replicas of new messages and answers."""
        return f"{self._prefix}:wake"

    def log(self, stream: str) -> str:
        """The log of one stream."""
        return f"{self.logs}{stream}"


def sessions_of(namespace: str, tenant: TenantId) -> str:
    """The name of the tenant's set of sessions, sorted by last use."""
    return f"{namespace}:t:{tenant}:sessions"


def sessions_of_subject(namespace: str, tenant: TenantId, subject: str) -> str:
    """The name of the subject's set of sessions; the subject is hashed because it may contain any text."""
    return f"{namespace}:t:{tenant}:sessions:{_digest(subject)}"


def subscribers_prefix(namespace: str, tenant: TenantId) -> str:
    """The prefix of the names of the subscriber sets."""
    return f"{namespace}:t:{tenant}:subscribers:"


def digest_uri(uri: str) -> str:
    """The digest of a URI, for use in a name."""
    return _digest(uri)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
