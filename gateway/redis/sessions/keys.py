"""What the parts of a session are called in Redis; every name begins with the tenant's.

A session is a record, a hash of what changes (`state`), one log per stream with a set of their names (`index`), and the
set of what it is subscribed to, with those URIs. All of it is removed together with the record; when that expires, what
it was subscribed to lives on for a little while.
"""

import hashlib
from dataclasses import dataclass

from gateway.domain.identifiers import TenantId

STANDALONE = "g"
"""The stream that belongs to no request: what a client's GET listens to."""


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
        """What a session is; without it nothing of the session counts."""
        return self._prefix

    @property
    def state(self) -> str:
        """What of it changes: log level, newest stream, cursor, open questions, requests that are running."""
        return f"{self._prefix}:state"

    @property
    def index(self) -> str:
        """The names of its logs."""
        return f"{self._prefix}:logs"

    @property
    def subscriptions(self) -> str:
        """The digests of the URIs it is subscribed to."""
        return f"{self._prefix}:subscriptions"

    @property
    def uris(self) -> str:
        """Those of these URIs that are not too long to be kept, by their digests."""
        return f"{self._prefix}:uris"

    @property
    def logs(self) -> str:
        """What the names of all its logs begin with."""
        return f"{self._prefix}:log:"

    @property
    def wake(self) -> str:
        """The channel on which it is told that there is something to read."""
        return f"{self._prefix}:wake"

    def log(self, stream: str) -> str:
        """The log of one stream."""
        return f"{self.logs}{stream}"


def sessions_of(namespace: str, tenant: TenantId) -> str:
    """The tenant's sessions by when they were last seen."""
    return f"{namespace}:t:{tenant}:sessions"


def sessions_of_subject(namespace: str, tenant: TenantId, subject: str) -> str:
    """The same of one subject, whose own text may be anything."""
    return f"{namespace}:t:{tenant}:sessions:{_digest(subject)}"


def subscribers_prefix(namespace: str, tenant: TenantId) -> str:
    """What the names of the sets of subscribers begin with."""
    return f"{namespace}:t:{tenant}:subscribers:"


def digest_uri(uri: str) -> str:
    """A URI as part of a name."""
    return _digest(uri)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
