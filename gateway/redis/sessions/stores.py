"""All Redis stores of sessions and streams in one object."""

from dataclasses import dataclass

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.redis.caches.result_overflow import ResultOverflow
from gateway.redis.caches.single_use import SingleUseIds
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import LiveReplicas
from gateway.redis.limits.stream_limiter import StreamLimiter
from gateway.redis.live.linked_resources import LinkedResources
from gateway.redis.sessions.log_levels import LogLevels
from gateway.redis.sessions.pending_requests import PendingRequests
from gateway.redis.sessions.records import Sessions
from gateway.redis.sessions.request_claims import RequestClaims
from gateway.redis.sessions.stream_log import StreamLog
from gateway.redis.sessions.subscriptions import SessionSubscriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStores:
    """The Redis stores of sessions and streams; any replica can continue the sessions of another one."""

    bus: EventBus
    spawn: Spawn
    lives: LiveReplicas
    sessions: Sessions
    logs: StreamLog
    claims: RequestClaims
    pending_requests: PendingRequests
    preferences: LogLevels
    subscriptions: SessionSubscriptions
    stream_limiter: StreamLimiter
    nonces: SingleUseIds
    overflow: ResultOverflow
    links: LinkedResources
    idle_s: int


def session_stores(bus: EventBus, *, spawn: Spawn, idle_s: int) -> SessionStores:
    """Build the stores; a session expires after this many seconds without use."""
    sessions = Sessions(bus, spawn=spawn, idle_s=idle_s)
    return SessionStores(
        bus=bus,
        spawn=spawn,
        lives=LiveReplicas(bus),
        sessions=sessions,
        logs=StreamLog(bus, sessions),
        claims=RequestClaims(bus, spawn=spawn),
        pending_requests=PendingRequests(bus),
        preferences=LogLevels(bus),
        subscriptions=SessionSubscriptions(bus, sessions),
        stream_limiter=StreamLimiter(bus, spawn=spawn),
        nonces=SingleUseIds(bus),
        overflow=ResultOverflow(bus),
        links=LinkedResources(bus, idle_s=idle_s),
        idle_s=idle_s,
    )
