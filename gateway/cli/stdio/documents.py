"""`gateway stdio --spec`: serves documents from this process, without a database."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain, count

import anyio
import msgspec

from gateway.app.local.documents import LocalDocument, LocalOptions, LocalSource, compile_all
from gateway.cli.advice import explain_no_tools
from gateway.cli.click_group import paused_collection
from gateway.cli.client.loopback import find_loopback
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure, failure_of
from gateway.cli.input.documents import DocumentArgument, read_document, source_name
from gateway.cli.input.json_fields import as_text, to_object
from gateway.cli.input.secrets import parse_credentials
from gateway.cli.input.selections import selection_fields
from gateway.cli.output.decisions import describe_decisions
from gateway.cli.output.printing import echo
from gateway.cli.output.tables import count as count_text
from gateway.cli.stdio.options import StdioOptions
from gateway.cli.stdio.running import run
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.fairness.thread_kinds import OWN_PROGRAMS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.http.requests import Credential
from gateway.domain.sources import Exposure, OperationRule
from gateway.domain.tenancy.policy import Decision, Policy
from gateway.domain.updates.import_reports import Status
from gateway.errors import GatewayError
from gateway.openapi.options import PLAIN, DocumentForm
from gateway.protocol.stdio.streams import ClaimedStreams, StdioStreams
from gateway.telemetry.logs import configure_logging
from gateway.upstream.client import UpstreamClient

_SERVER = "gateway.app.local.server"
_CLIENT_VARIABLES = ("GATEWAY_URL", "GATEWAY_TENANT", "GATEWAY_KEY", "GATEWAY_CONTEXT")
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configuration:
    """The settings from the environment that apply to this command."""

    egress_allow: tuple[str, ...] = ()
    log_level: str = "warning"
    logs_json: bool = False


def serve_documents(claimed: ClaimedStreams, specs: Sequence[str], options: StdioOptions) -> None:
    """Serve the documents on the standard streams until the client ends.

    Raises:
        Failure: an option, a setting or a document cannot be used; nothing was served.
    """
    configuration = _read_configuration()
    configure_logging(level=configuration.log_level, as_json=configuration.logs_json)
    arguments = [_read(spec) for spec in specs]
    documents = _name_documents(arguments, prefixes=options["prefixes"], base_urls=options["base_urls"])
    pairs = zip(arguments, documents, strict=True)
    reachable = chain.from_iterable(find_loopback(given, base_url=document.base_url) for given, document in pairs)
    upstream = UpstreamClient(egress_allow=(*configuration.egress_allow, *reachable))
    local, policy = _local_options(options), _policy(options)
    run(claimed, partial(_serve, documents=documents, options=local, policy=policy, upstream=upstream))


async def _serve(
    streams: StdioStreams,
    *,
    documents: Sequence[LocalDocument],
    options: LocalOptions,
    policy: Policy,
    upstream: UpstreamClient,
) -> None:
    async with TaskSupervisor() as tasks, upstream:
        sources: list[LocalSource] = []
        async with anyio.create_task_group() as group:  # workers compile while this process imports the pipeline
            group.start_soon(run_in_thread, OWN_PROGRAMS, "", _import_server)
            sources += await compile_all(documents, options, upstream)
        if not any(source.compilation.operations for source in sources):
            raise Failure(explain_no_tools(to_object(msgspec.to_builtins(sources[0].report))))
        from gateway.app.local.server import build_local_server  # noqa: PLC0415  # imported above

        server = build_local_server(sources, options.expose, policy, upstream=upstream, spawn=tasks.spawn)
        _announce(sources, policy)
        await server.serve(streams)


def _import_server() -> None:
    with paused_collection():
        import_module(_SERVER)


def _announce(sources: Sequence[LocalSource], policy: Policy) -> None:
    for source in sources:
        report = source.report
        skipped = report.count(Status.SKIPPED)
        note = f", {count_text(skipped, 'operation')} skipped" if skipped else ""
        echo(f"gateway: {source.name}: {count_text(len(source.compilation.operations), 'operation')}{note}", err=True)
    decisions = describe_decisions(policy.safe, policy.moderate, policy.dangerous)
    echo(f"gateway: policy: {decisions}; change it with --safe, --moderate, --dangerous", err=True)


def _read(spec: str) -> DocumentArgument:
    if spec == _STANDARD_INPUT:
        raise Failure("--spec -: standard input carries MCP messages; give a path or a URL", ExitCode.USAGE)
    return read_document(spec)


def _name_documents(
    arguments: Sequence[DocumentArgument], *, prefixes: Sequence[str], base_urls: Sequence[str]
) -> Sequence[LocalDocument]:
    """Return the documents, each with a unique name, its prefix and its base URL."""
    names: list[str] = []
    for given in arguments:
        stem = source_name(given.name)
        candidates = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
        names.append(next(name for name in candidates if name not in names))
    return [
        LocalDocument(
            name=name,
            place=given.name,
            content=given.archive or (given.text or "").encode("utf-8", "surrogatepass"),
            form=DocumentForm(is_archive=True) if given.archive is not None else PLAIN,
            url=given.url,
            prefix=prefix,
            base_url=base_url,
        )
        for given, name, prefix, base_url in zip(
            arguments,
            names,
            _value_per_document("--prefix", prefixes, len(names)),
            _value_per_document("--base-url", base_urls, len(names)),
            strict=True,
        )
    ]


def _value_per_document(option: str, given: Sequence[str], wanted: int) -> Sequence[str | None]:
    if given and len(given) != wanted:
        raise Failure(
            f"{option} is given {len(given)} times for {wanted} documents; give it once per document", ExitCode.USAGE
        )
    return [value or None for value in given] or [None] * wanted


def _local_options(options: StdioOptions) -> LocalOptions:
    fields = selection_fields(options)
    given = parse_credentials(options["credentials"], logins=options["logins"])
    return LocalOptions(
        expose=Exposure(options["member_expose"] or Exposure.TOOLS),
        include=_rules(fields.get("include")),
        exclude=_rules(fields.get("exclude")),
        output_schemas=bool(options["member_output_schemas"]),
        credentials={scheme: _credential(secret) for scheme, secret in given.items()},
    )


def _rules(given: object) -> tuple[OperationRule, ...]:
    return msgspec.convert(given or [], tuple[OperationRule, ...])


def _credential(secret: object) -> Credential:
    match secret:
        case [str(username), str(password)]:
            return Credential(username=username, value=password)
        case dict():
            raise Failure("--credential: this command has no stored credentials; give the value", ExitCode.USAGE)
        case _:
            return Credential(value=as_text(secret))


def _policy(options: StdioOptions) -> Policy:
    return Policy(
        safe=Decision(options["safe"]),
        moderate=Decision(options["moderate"]),
        dangerous=Decision(options["dangerous"]),
    )


def _read_configuration() -> _Configuration:
    """Read the settings. If the environment has none, return the defaults, because the import takes 0.15 s.

    Raises:
        Failure: a setting is invalid.
    """
    if not any(name.startswith("GATEWAY_") and name not in _CLIENT_VARIABLES for name in os.environ):
        return _Configuration()
    from gateway.settings import load_settings  # noqa: PLC0415

    try:
        settings = load_settings()
    except GatewayError as error:
        raise failure_of(error) from None
    return _Configuration(
        egress_allow=settings.egress_allow,
        log_level=settings.log_level if "log_level" in settings.model_fields_set else "warning",
        logs_json=settings.log_as_json,
    )
