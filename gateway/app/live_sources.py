"""Wiring of live sources: connectors by kind, leases, forwarding between replicas, and requests."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import structlog

from gateway.app.infrastructure import Infrastructure
from gateway.catalog.snapshots.credential_cache import CredentialCache
from gateway.catalog.transaction import CatalogContext
from gateway.domain.events import LiveSourceChanged, SessionEnded
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveKind
from gateway.errors import RedisUnavailable
from gateway.handlers.live.access import StoredSourceAccess
from gateway.jobs.live.agent_sources import AgentSources
from gateway.jobs.live.attachments import LiveAttachments
from gateway.jobs.live.forwarding import Forwarding
from gateway.jobs.live.held import HeldAttachments
from gateway.jobs.live.outside_messages import OutsideMessages
from gateway.jobs.live.requests import LiveRequester
from gateway.jobs.live.result_notices import ResultNotices
from gateway.redis.heartbeat import LiveReplicas
from gateway.redis.live.inboxes import ReplicaInboxes
from gateway.redis.live.leases import AttachmentLeases, SourceKey
from gateway.redis.live.upstream_sessions import UpstreamSessions
from gateway.redis.sessions.stores import SessionStores
from gateway.upstream.auth.delegation import Delegations
from gateway.upstream.live.command.connector import CommandConnector
from gateway.upstream.live.interfaces import LiveConnector
from gateway.upstream.live.mcp.caller_sessions import SessionsInUse, SharedSessions
from gateway.upstream.live.mcp.connector import McpConnector
from gateway.upstream.live.neovim.connector import NeovimConnector
from gateway.web.providers.endpoint import ProvideEndpoint
from gateway.web.providers.open_providers import OpenProviders

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveParts:
    """The components that serve requests to live sources on one replica."""

    connectors: Mapping[LiveKind, LiveConnector]
    leases: AttachmentLeases
    held: HeldAttachments
    forwarding: Forwarding
    requests: LiveRequester
    sessions: UpstreamSessions

    @property
    def parts(self) -> Sequence[AbstractAsyncContextManager[object]]:
        """The components to open, in this order."""
        return self.forwarding, self.requests

    async def make_due(self, event: LiveSourceChanged) -> None:
        """Make a source due if no replica holds its lease."""
        try:
            await self.leases.add([SourceKey(event.tenant, event.source)], is_due=True)
        except RedisUnavailable:
            log.warning("live_source_not_added", source=event.source)  # the next recheck makes it due

    def interrupt_tenant(self, tenant: TenantId) -> None:
        """Close this replica's attachments and connections to the sources of a removed tenant."""
        self.held.retire_tenant(tenant)
        self.requests.forget_tenant(tenant)

    def interrupt(self, event: LiveSourceChanged) -> None:
        """Close this replica's attachment and own connection to a source that was changed."""
        key = SourceKey(event.tenant, event.source)
        self.held.retire(key)
        self.requests.forget(key)

    async def end_sessions(self, event: SessionEnded) -> None:
        """End the sessions that a client has at live sources, with its own one."""
        try:
            await self.sessions.end_of_client(event.tenant, event.session)
        except RedisUnavailable:
            log.warning("upstream_sessions_not_ended")  # they end when they are idle


def build_live_parts(
    infrastructure: Infrastructure, secrets: CredentialCache, delegations: Delegations, stores: SessionStores
) -> LiveParts:
    """Build the parts of a replica; none is opened."""
    bus, upstream, spawn, cipher = (
        infrastructure.bus,
        infrastructure.upstream,
        infrastructure.tasks.spawn,
        infrastructure.cipher,
    )
    held, in_use, leases = HeldAttachments(), SessionsInUse(), AttachmentLeases(bus)
    forwarding = Forwarding(ReplicaInboxes(bus), LiveReplicas(bus), held.serve, in_use.deliver, replica=bus.replica)
    records = UpstreamSessions(bus, secret=cipher.derive("upstream sessions"), idle_s=stores.idle_s)
    outside = OutsideMessages(records, forwarding)
    sessions = SharedSessions(records, in_use, outside.pass_on, cipher.derive("upstream session keys"))
    connectors: Mapping[LiveKind, LiveConnector] = {
        LiveKind.MCP: McpConnector(upstream, StoredSourceAccess(secrets, delegations), spawn, sessions),
        LiveKind.NEOVIM: NeovimConnector(upstream),
        LiveKind.COMMAND: CommandConnector(spawn),  # the catalog loads such sources only if a setting allows them
    }
    return LiveParts(
        connectors=connectors,
        leases=leases,
        held=held,
        forwarding=forwarding,
        requests=LiveRequester(
            held, forwarding, leases, connectors, links=stores.links, notices=ResultNotices(infrastructure.store)
        ),
        sessions=records,
    )


def build_attachments(infrastructure: Infrastructure, catalog: CatalogContext, live: LiveParts) -> LiveAttachments:
    """Build the attachments of a replica."""
    return LiveAttachments(live.leases, catalog, live.connectors, live.held, replica=infrastructure.bus.replica)


def build_provide_endpoint(
    infrastructure: Infrastructure,
    catalog: CatalogContext,
    live: LiveParts,
    attachments: LiveAttachments,
    *,
    providers: OpenProviders,
) -> ProvideEndpoint:
    """Build the endpoint of programs that connect to the gateway."""
    sources = AgentSources(catalog, attachments, live.leases, replica=infrastructure.bus.replica)
    return ProvideEndpoint(providers, sources)
