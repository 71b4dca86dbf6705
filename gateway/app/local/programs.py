"""Servers of a program's own primitives in its own process, without PostgreSQL, Redis and listeners."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from gateway.app.local.access import ensure_access
from gateway.app.local.documents import LOCAL
from gateway.app.local.server import LoggedCalls, build_code_server
from gateway.app.python.registrations import Registrations
from gateway.app.server.running import Running
from gateway.calls.recorded_call import AuditSink
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.fairness.thread_kinds import OWN_PROGRAMS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.tenancy.client_setup import ClientTarget, client_lines
from gateway.domain.tenancy.policy import LOCAL_POLICY, read_decisions
from gateway.protocol.stdio.running import serve_streams
from gateway.protocol.stdio.server import StdioServer
from gateway.protocol.stdio.streams import ClaimedStreams
from gateway.settings import Settings
from gateway.telemetry.logs import configure_logging, configure_program_logging
from gateway.telemetry.standard_streams import replace_standard_streams
from gateway.upstream.client import UpstreamClient


@asynccontextmanager
async def open_code_server(
    code: Registrations, settings: Settings, audit: AuditSink, *, slug: str = LOCAL, reachable: Sequence[str] = ()
) -> AsyncGenerator[StdioServer]:
    """Yield the server of the primitives for the tenant with this slug; it may call the addresses in `reachable`.

    Raises:
        BrokenSetting: a decision in the settings is invalid.
    """
    configure_program_logging(level=level_of(settings))
    decisions = settings.tenant_policy if "tenant_policy" in settings.model_fields_set else LOCAL_POLICY
    upstream = UpstreamClient(egress_allow=(*settings.egress_allow, *reachable))
    async with TaskSupervisor() as tasks, upstream:
        yield build_code_server(code, read_decisions(decisions), slug, audit, upstream=upstream, spawn=tasks.spawn)


async def serve_code(
    claimed: ClaimedStreams, code: Registrations, settings: Settings, *, reachable: Sequence[str] = ()
) -> None:
    """Serve the primitives on claimed standard streams until the client ends, or a signal arrives."""
    replace_standard_streams()
    configure_logging(level=level_of(settings), as_json=settings.log_as_json)
    async with open_code_server(code, settings, LoggedCalls(), reachable=reachable) as server:
        await serve_streams(claimed, server.serve)


def local_settings(settings: Settings, reachable: Sequence[str]) -> Settings | None:
    """Return the settings of a gateway for one person, which may call the addresses in `reachable`.

    None if others use the gateway too.
    """
    if not settings.is_for_one_person:  # guard: printed-key-for-one-person
        return None
    return settings.model_copy(
        update={"egress_allow": (*settings.egress_allow, *reachable), "log_level": level_of(settings)}
    )


def level_of(settings: Settings) -> str:
    """Return the configured level of logs; without one, a program of one person logs from warnings up."""
    return settings.log_level if "log_level" in settings.model_fields_set else "warning"


async def announce_access(running: Running) -> None:
    """Print the MCP URL and the key of this person's tenant, and the line of one client."""
    application = running.application
    if application is None:
        return
    credentials = application.runtime.credentials
    key = await ensure_access(application.catalog, credentials, slug=LOCAL, folder=running.data_dir)
    target = ClientTarget(name="gateway", url=f"{running.url}/t/{LOCAL}/mcp", key=key)
    client, line = client_lines(target)[0]
    facts = (("MCP URL", target.url), ("header", f"Authorization: Bearer {key}"), (client, line))
    text = "".join(f"{name:<12} {value}\n" for name, value in facts)
    await run_in_thread(OWN_PROGRAMS, "", partial(print, text, end="", flush=True))  # a reader of the output may block
