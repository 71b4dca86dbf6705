"""Resources that a client may read: those of its registry, and those to which tools of live sources have linked."""

import structlog

from gateway.errors import RedisUnavailable
from gateway.handlers.binding import BoundResource
from gateway.handlers.live.handlers import link_owner
from gateway.redis.live.linked_resources import LinkedResources
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)


class ResourceFinder:
    """Finds resources by URI."""

    def __init__(self, links: LinkedResources) -> None:
        self._links = links

    async def find(self, registry: Registry, uri: str, session: str | None) -> BoundResource | None:
        """Return the resource at this URI, bound to its handler; None if there is none for this client.

        `session` is the client's MCP session; None in 2026-07-28.
        """
        bound = await registry.resource(uri)
        if bound is not None or not registry.has_live_sources:
            return bound
        owner = link_owner(registry.result_owner, session or "")
        try:
            source = await self._links.find(registry.principal.tenant, owner, uri)
        except RedisUnavailable:
            log.warning("live_links_unknown")
            return None
        return None if source is None else await registry.linked_resource(uri, source)
