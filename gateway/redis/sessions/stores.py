"""Everything of sessions and streams that lies in Redis, as one."""

from dataclasses import dataclass

from gateway.redis.caches.single_use import Nonces
from gateway.redis.event_bus import Bus
from gateway.redis.heartbeat import Lives
from gateway.redis.limits.stream_limiter import Places
from gateway.redis.sessions.log_levels import Preferences
from gateway.redis.sessions.pending_requests import Questions
from gateway.redis.sessions.records import Sessions
from gateway.redis.sessions.request_claims import Claims
from gateway.redis.sessions.stream_log import Logs
from gateway.redis.sessions.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """What any replica needs to go on with what another began."""

    bus: Bus
    lives: Lives
    sessions: Sessions
    logs: Logs
    claims: Claims
    questions: Questions
    preferences: Preferences
    subscriptions: Subscriptions
    places: Places
    nonces: Nonces
    idle_s: int


def back_sessions(bus: Bus, *, idle_s: int) -> Backing:
    """The sessions of a gateway; each ends when it was not used for this long."""
    sessions = Sessions(bus, idle_s=idle_s)
    return Backing(
        bus=bus,
        lives=Lives(bus),
        sessions=sessions,
        logs=Logs(bus, sessions),
        claims=Claims(bus),
        questions=Questions(bus),
        preferences=Preferences(bus),
        subscriptions=Subscriptions(bus, sessions),
        places=Places(bus),
        nonces=Nonces(bus),
        idle_s=idle_s,
    )
