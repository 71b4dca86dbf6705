"""The table of events and their subscribers."""

from typing import get_args

from gateway.app.backends import Backends
from gateway.app.build import build_mcp_app
from gateway.app.event_router import build_event_router
from gateway.app.infrastructure import build_infrastructure
from gateway.app.metrics_wiring import make_metrics
from gateway.app.python.registrations import Registrations
from gateway.app.runtime import build_runtime
from gateway.app.secrets import GatewayKeys, RereadSecrets
from gateway.domain.events import Event, LiveSourceChanged
from gateway.domain.tenancy.ceilings import read_ceilings
from gateway.settings import Settings
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY


def test_every_type_of_event_has_a_route_with_subscribers() -> None:
    """Ours: an event that is added without a route is found here, not when it is published."""
    settings = Settings.model_validate({})
    keys = GatewayKeys(secret_keys=(SECRET_KEY,), operator_key=OPERATOR_KEY, operator_key_is_new=False)
    addresses = Backends(database_url="postgresql://nowhere/none", redis_url="redis://127.0.0.1:1", is_embedded=False)
    secrets = RereadSecrets(settings, keys, addresses)
    infrastructure = build_infrastructure(settings, keys, secrets)
    ceilings = read_ceilings(settings.ceilings)
    code = Registrations()
    runtime = build_runtime(
        infrastructure, secrets.operator_key, code, make_metrics(), settings=settings, ceilings=ceilings
    )

    routes = build_event_router(infrastructure, runtime, build_mcp_app(infrastructure, runtime)).routes

    assert set(routes) == set(get_args(Event))
    unused = {event for event, route in routes.items() if not (route.caches or route.arrival)}
    assert unused <= {LiveSourceChanged}
