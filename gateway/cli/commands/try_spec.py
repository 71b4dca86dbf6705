"""`gateway try`: serves the tools of a document from a temporary gateway with its own servers and keys."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.app.server.running import Running
from gateway.cli.advice import advise, explain_no_tools
from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.local_gateway import host, local_settings
from gateway.cli.client.locations import mcp_url
from gateway.cli.client.loopback import find_loopback
from gateway.cli.client.mcp_endpoint import McpClient
from gateway.cli.client.provision import ensure_key, ensure_source, ensure_tenant, policy_line
from gateway.cli.failures import Failure, failure_of
from gateway.cli.input.documents import DocumentArgument, read_document, source_name
from gateway.cli.input.import_options import ImportArguments
from gateway.cli.input.import_request import import_fields
from gateway.cli.input.json_fields import JsonObject, number_at, to_object
from gateway.cli.input.options import wants_json
from gateway.cli.output.client_lines import call_line, render_clients
from gateway.cli.output.printing import Shown, show
from gateway.cli.output.progress import Progress
from gateway.cli.output.reports import count_tools, join_parts, render_prices, render_reasons, render_totals
from gateway.domain.tenancy.client_setup import ClientTarget, client_lines
from gateway.errors import InvalidDocument
from gateway.openapi.document import document as openapi

_TENANT = "try"
_KEY_FILE = "try-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A served document: MCP URL, key, import report and example call."""

    name: str
    url: str
    key: str
    report: JsonObject
    reachable: tuple[str, ...]
    call: str
    """A shell command that calls a tool; empty if no tool is safe to call with sample arguments."""
    policy: str

    @property
    def target(self) -> ClientTarget:
        """The URL and the key for clients."""
        return ClientTarget(name=self.name, url=self.url, key=self.key)


def try_document(spec: str, port: int, data_dir: Path | None, options: ImportArguments) -> None:
    """Serve the document as tools until Ctrl-C.

    Raises:
        Failure: the document cannot be read, the gateway did not start, or it refused the document.
    """
    as_json = wants_json()
    document = read_document(spec)
    _refuse_invalid(document)
    fields = import_fields(options)
    reachable = find_loopback(document, base_url=options["member_base_url"])
    with _folder(data_dir) as folder, Progress(is_silent=as_json) as progress:
        settings = local_settings(port=port, folder=folder, reachable=reachable)
        progress.stage("Starting the gateway with PostgreSQL and Redis of its own")

        def prepare(running: Running) -> None:
            name = source_name(spec)
            with AdminApi(running.admin_url, running.operator_key) as admin:
                ensure_tenant(admin, _TENANT)
                path = path_of("tenants", _TENANT, "sources")
                imported = ensure_source(admin, progress, path=path, fields={"name": name, **fields}, document=document)
                key = ensure_key(admin, _TENANT, kept_in=folder / _KEY_FILE)
                policy = policy_line(admin, _TENANT, change="GATEWAY_TENANT_POLICY=moderate=confirm,dangerous=allow")
            progress.finish()
            report, url = to_object(imported.get("report")), mcp_url(running.url, _TENANT)
            if not count_tools(report):
                show({"tools": 0, "report": report}, lambda: _render_report(report), as_json=as_json)
                raise Failure(explain_no_tools(report))
            with McpClient(url, key) as endpoint:
                call = call_line(ClientTarget(name=name, url=url, key=key), endpoint.tools())
            trial = Trial(name=name, url=url, key=key, report=report, reachable=reachable, call=call, policy=policy)
            show(_facts(trial), lambda: _render(trial), as_json=as_json)

        host(settings, prepare)


def _refuse_invalid(document: DocumentArgument) -> None:
    """Refuse a text that is no OpenAPI document before the servers are started."""
    if document.text is None:
        return
    try:
        openapi.read_document(document.text.encode())
    except InvalidDocument as invalid:
        raise failure_of(invalid) from None


@contextmanager
def _folder(given: Path | None) -> Generator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="gateway-try-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _facts(trial: Trial) -> JsonObject:
    return {
        "url": trial.url,
        "key": trial.key,
        "tools": count_tools(trial.report),
        "tools_list_bytes": number_at(trial.report, "tools_list_bytes"),
        "tools_list_tokens_estimate": number_at(trial.report, "estimated_tokens"),
        "reachable": list(trial.reachable),
        "clients": dict(client_lines(trial.target)),
        "call": trial.call or None,
        "report": trial.report,
    }


def _render(trial: Trial) -> Shown:
    allowed = ", ".join(trial.reachable)
    note = f"calls can reach {allowed} on this machine, which you named, and no other private address"
    return join_parts(
        _render_report(trial.report),
        advise(trial.report),
        note if trial.reachable else "",
        render_clients(trial.target, call=trial.call),
        trial.policy,
        "Ctrl-C ends it.",
    )


def _render_report(report: JsonObject) -> Shown:
    return join_parts(render_totals(report), render_prices(report), render_reasons(report))
