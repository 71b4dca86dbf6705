"""The request being served, for the SDK's callbacks that are handed nothing but a name or parameters."""

from contextvars import ContextVar
from dataclasses import dataclass

from gateway.domain.principals import Principal
from gateway.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message of one principal, and the registry it is served from."""

    principal: Principal
    registry: Registry
    correlation_id: str


CURRENT: ContextVar[Exchange] = ContextVar("gateway_exchange")
