"""Redis keys of the parts of a session; every key begins with the namespace and the tenant.

A session has a record, a hash of mutable fields (`state`), one log per stream, and the set of stream names (`index`).
Its subscriptions are a set of URI digests and a hash of URIs. `Sessions.remove` deletes all parts together; if the
record expires instead, the subscriptions expire a little later.
"""

import hashlib
from dataclasses import dataclass

from gateway.domain.identifiers import TenantId

STANDALONE = "g"
"""The stream that belongs to no request; a client follows it with GET."""


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The Redis keys of one session of one tenant."""

    namespace: str
    tenant: TenantId
    session: str

    @property
    def _prefix(self) -> str:
        return f"{self.namespace}:t:{self.tenant}:s:{self.session}"

    @property
    def record(self) -> str:
        """Key of the record; the session exists as long as its record."""
        return self._prefix

    @property
    def state(self) -> str:
        """Key of the hash of mutable fields: log level, reader and position, pending and running requests, updates."""
        return f"{self._prefix}:state"

    @property
    def index(self) -> str:
        """Key of the set of the session's stream names."""
        return f"{self._prefix}:logs"

    @property
    def subscriptions(self) -> str:
        """Key of the set of digests of the subscribed URIs."""
        return f"{self._prefix}:subscriptions"

    @property
    def uris(self) -> str:
        """Key of the hash of subscribed URIs by digest; URIs that are too long are absent."""
        return f"{self._prefix}:uris"

    @property
    def logs(self) -> str:
        """Prefix of the keys of the session's logs."""
        return f"{self._prefix}:log:"

    @property
    def wake(self) -> str:
        """Channel that notifies replicas of new messages and of clients' responses."""
        return f"{self._prefix}:wake"

    def log(self, stream: str) -> str:
        """Key of the log of one stream."""
        return f"{self.logs}{stream}"


def sessions_of(namespace: str, tenant: TenantId) -> str:
    """Key of the tenant's set of sessions, sorted by last use."""
    return f"{namespace}:t:{tenant}:sessions"


def sessions_of_subject(namespace: str, tenant: TenantId, subject: str) -> str:
    """Key of the subject's set of sessions; the subject is hashed because it may contain any text."""
    return f"{namespace}:t:{tenant}:sessions:{_digest(subject)}"


def subscribers_prefix(namespace: str, tenant: TenantId) -> str:
    """Prefix of the keys of the tenant's subscriber sets."""
    return f"{namespace}:t:{tenant}:subscribers:"


def digest_uri(uri: str) -> str:
    """The digest of a URI, for use in a Redis key."""
    return _digest(uri)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
