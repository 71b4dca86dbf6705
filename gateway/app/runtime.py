"""What a call goes through between the faces and the doors: credentials, snapshots, connections, stations."""

from dataclasses import dataclass

from gateway.app.infrastructure import Doors
from gateway.app.key_lookup import StoredKeys
from gateway.app.python.registrations import Registrations
from gateway.app.secrets import Keys
from gateway.calls.pipeline import Calls
from gateway.calls.result_rendering import Shaper
from gateway.catalog.egress import StoredAllowLists
from gateway.catalog.snapshots.credential_cache import StoredSecrets
from gateway.catalog.snapshots.outline_cache import Outlines
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.connections.connections import Connections
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.tenancy.policy import Limits
from gateway.handlers.api_query import Queries
from gateway.handlers.binding import Binder
from gateway.identity.authenticator import Credentials
from gateway.identity.failure_limit import FailureLimit
from gateway.redis.caches.oauth_tokens import SharedTokens
from gateway.redis.caches.result_overflow import Leftovers
from gateway.redis.limits.call_limiter import Buckets
from gateway.registry.cursors import Cursors
from gateway.registry.views import Views
from gateway.telemetry.metrics import Metrics
from gateway.upstream.auth.oauth_tokens import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The parts that hold what this replica knows of its tenants."""

    snapshots: Snapshots
    secrets: StoredSecrets
    views: Views
    credentials: Credentials
    connections: Connections
    calls: Calls
    limiter: Buckets
    leftovers: Leftovers


def build_inside(
    doors: Doors, keys: Keys, code: Registrations, metrics: Metrics, *, ceilings: Limits, failures: FailureLimit
) -> Inside:
    """The inside of a replica, which knows nothing yet."""
    snapshots = Snapshots(doors.store, code=code, ceilings=ceilings)
    doors.upstream.consult(StoredAllowLists(doors.store, snapshots))
    secrets = StoredSecrets(doors.store, doors.sealer)
    tokens = Tokens(doors.upstream, SharedTokens(doors.bus, secret=doors.sealer.derive("access tokens")))
    cursors = Cursors(doors.sealer.derive("cursors"))
    queries = Queries(Outlines(doors.store), cursors)
    views = Views(Binder(doors.upstream, secrets, Validators(), code, tokens, queries), code=code)
    credentials = Credentials(
        StoredKeys(doors.store),
        peppers=doors.sealer.derive_all("pepper"),
        operator_key=keys.operator_key,
        failures=failures,
    )
    leftovers = Leftovers(doors.bus)
    limiter = Buckets(doors.bus)
    return Inside(
        snapshots=snapshots,
        secrets=secrets,
        views=views,
        credentials=credentials,
        connections=Connections(snapshots, views, cursors, still_valid=credentials.still_valid),
        calls=Calls(limiter, doors.audit, Shaper(leftovers), metrics),
        limiter=limiter,
        leftovers=leftovers,
    )
