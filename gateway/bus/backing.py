"""Everything of sessions and streams that lies in Redis, as one."""

from dataclasses import dataclass

from gateway.bus.bus import Bus
from gateway.bus.claims import Claims
from gateway.bus.lives import Lives
from gateway.bus.logs import Logs
from gateway.bus.nonces import Nonces
from gateway.bus.places import Places
from gateway.bus.preferences import Preferences
from gateway.bus.questions import Questions
from gateway.bus.sessions import Sessions
from gateway.bus.subscriptions import Subscriptions


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
