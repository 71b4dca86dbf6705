"""`gateway source`: the OpenAPI documents from which a tenant's tools are imported."""

from typing import Unpack

import click

from gateway.cli.advice import advise, explain_no_tools
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.overrides import list_overrides
from gateway.cli.commands.updates.source_versions import COMMANDS
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import read_declarations
from gateway.cli.input.declared_items import path_and_fields, send_all
from gateway.cli.input.documents import name_of, read_document
from gateway.cli.input.import_options import (
    REPLACED,
    ImportArguments,
    credential_option,
    entry_option,
    login_option,
    parameter_option,
    source_options,
    wait_option,
)
from gateway.cli.input.import_request import Upload, import_fields, upload
from gateway.cli.input.json_fields import JsonObject, text_at, to_object
from gateway.cli.input.selections import selection_options
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.options import replace_option
from gateway.cli.kinds.output import render_object
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import ObjectArgument, object_argument
from gateway.cli.output.printing import Shown, join
from gateway.cli.output.progress import Progress
from gateway.cli.output.reports import (
    count_tools,
    join_parts,
    render_needs,
    render_reasons,
    render_report,
    render_totals,
)
from gateway.cli.output.source_changes import count_changes, render_changes
from gateway.cli.output.tables import render_table
from gateway.kinds.sources import SOURCE

_NOUN = "sources"
_NAMES = naming_of(SOURCE)

removals_option = click.option("--yes", "-y", is_flag=True, help="Permit an update that removes tools.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only report the result; nothing is stored.")


source = KindCommands(
    kind=SOURCE,
    verbs=("list", "delete"),
    about="Import OpenAPI documents and read their reports.",
    loss=" with its tools and credentials",
).group()
source.add_command(list_overrides)
for _command in COMMANDS:
    source.add_command(_command)


@source.command("status")
@click.argument("name", cls=ObjectArgument, naming=_NAMES, required=False)
@with_tenant
def show_status(context: AdminContext, name: str | None) -> None:
    """Show the state of every source, or of NAME: the last import of documents, the attachment of live sources."""
    documents = [
        {"name": item["name"], "kind": "document", "since": item["updated_at"], **_describe_refresh(item)}
        for item in context.admin.pages(context.tenant_path(_NOUN))
    ]
    live = [
        {
            "name": item["name"],
            "kind": item["kind"],
            **to_object(item["status"]),
            **({} if item["enabled"] else {"state": "disabled"}),
        }
        for item in context.admin.pages(context.tenant_path("live-sources"))
    ]
    found = [one for one in [*documents, *live] if name in {None, one["name"]}]
    if name is not None and not found:
        raise Failure(f"the tenant has no source {name}", ExitCode.NOT_FOUND)
    names = ("name", "kind", "state", "since", "fault", "retry_at")
    rows = [[text_at(one, key) for key in names] for one in sorted(found, key=lambda one: text_at(one, "name"))]
    context.show(found, lambda: render_table(("name", "kind", "state", "since", "fault", "retry"), rows))


@source.command("add")
@click.argument("name")
@click.argument("spec")
@entry_option
@source_options(is_new=True)
@credential_option
@login_option
@parameter_option
@selection_options
@dry_run_option
@wait_option
@with_tenant
def add_source(
    context: AdminContext, name: str, spec: str, entry: str | None, *, dry_run: bool, **options: Unpack[ImportArguments]
) -> None:
    """Import SPEC (a path, a URL, or - for standard input) as source NAME.

    A document of several files is given as a zip, tar or tar.gz archive.

    \b
    Example:
      gateway source add pets https://pets.example/openapi.json --credential api_key=env:PETS_KEY
    """
    body: JsonObject = {"name": name, **import_fields(options)} | ({"dry_run": True} if dry_run else {})
    response = _import(
        context, "POST", context.tenant_path(_NOUN), (spec, entry), body=body, is_waiting=options.get("wait", False)
    )
    context.show(response, lambda: _render_import(response, name))


@source.command("set")
@click.argument("name", cls=ObjectArgument, naming=_NAMES, metavar="NAME|FILE")
@click.argument("spec", required=False)
@entry_option
@source_options(is_new=True)
@credential_option
@login_option
@parameter_option
@selection_options
@dry_run_option
@removals_option
@wait_option
@replace_option
@with_tenant
def set_source(
    context: AdminContext,
    name: str,
    spec: str | None,
    *,
    entry: str | None,
    dry_run: bool,
    yes: bool,
    **options: Unpack[ImportArguments],
) -> None:
    """Import SPEC as source NAME, or replace the document and options of that source.

    Credentials are kept if none is given. Any other option that is not given gets its default, as in `add`; `update`
    keeps the source's value. A change that would remove tools is refused without --yes. FILE (JSON or YAML; - reads
    stdin) declares sources with their options, as `show --json` prints them.

    \b
    Example:
      gateway source set pets pets.yaml --prefix pets
    """
    flags: JsonObject = {name: True for name, is_set in (("dry_run", dry_run), ("allow_removals", yes)) if is_set}
    query = "?replace=true" if options.get("replace") else ""
    if spec is None:
        _set_declared(context, name, import_fields(options), flags, query=query)
        return
    path, fields = context.tenant_path(_NOUN, name) + query, import_fields(options) | flags
    response = _import(context, "PUT", path, (spec, entry), body=fields, is_waiting=options.get("wait", False))
    context.show(response, lambda: _render_import(response, name))


@source.command("update")
@object_argument(_NAMES)
@click.argument("spec", required=False)
@entry_option
@source_options(is_new=False)
@credential_option
@login_option
@parameter_option
@selection_options
@dry_run_option
@removals_option
@wait_option
@with_tenant
def update_source(
    context: AdminContext,
    name: str,
    spec: str | None,
    *,
    entry: str | None,
    dry_run: bool,
    yes: bool,
    **options: Unpack[ImportArguments],
) -> None:
    """Change a source: another document in SPEC, other options, other credentials.

    An update that would remove tools is refused without --yes; the refusal shows how often they were called.

    \b
    Example:
      gateway source update pets --refresh-interval 6h --credential api_key=env:PETS_KEY
    """
    fields = import_fields(options)
    wanted = fields | ({"dry_run": True} if dry_run else {}) | ({"allow_removals": True} if yes else {})
    path = context.tenant_path(_NOUN, name)
    if spec is not None:
        response = _replace(context, path, (spec, entry), wanted, is_waiting=options.get("wait", False))
    elif fields and entry is None:
        response = context.admin.send("PATCH", path, wanted)
    else:
        reason = "nothing to change: give SPEC or an option" if entry is None else "--entry needs SPEC"
        raise Failure(reason, ExitCode.USAGE)
    context.show(
        response, lambda: _render_import(response, name) if "report" in response else render_object(SOURCE, response)
    )


@source.command("report")
@object_argument(_NAMES)
@with_tenant
def report_source(context: AdminContext, name: str) -> None:
    """Show the outcome of every operation, and the cost of the tools for a client."""
    report = context.admin.get(context.tenant_path(_NOUN, name, "report"))
    context.show(report, lambda: render_report(report))


@source.command("show")
@object_argument(_NAMES)
@with_tenant
def show_source(context: AdminContext, name: str) -> None:
    """Show one source, and the credentials that it lacks."""
    path = context.tenant_path(_NOUN, name)
    found = context.admin.get(path)
    report = {} if context.as_json else context.admin.get(f"{path}/report")
    context.show(found, lambda: join_parts(render_object(SOURCE, found), render_needs(report)))


def _set_declared(context: AdminContext, file: str, given: JsonObject, flags: JsonObject, *, query: str) -> None:
    """Replace the sources that a file declares, each with its options."""
    if given:
        raise Failure("give SPEC with options, or FILE alone", ExitCode.USAGE)

    def send(body: JsonObject) -> JsonObject:
        path, fields = path_and_fields(context, _NOUN, body, "name")
        return context.admin.send("PUT", path + query, fields | flags)

    done = send_all(read_declarations(file), send)
    context.show(done, lambda: join(_render_import(one, text_at(one, "name")) for one in done))


def _describe_refresh(item: JsonObject) -> JsonObject:
    """Return the state of a source, according to the refreshes from its URL."""
    refresh = to_object(item["status"])
    state = "proposal waits" if refresh["proposal"] is not None else "failing" if refresh["fault"] else "imported"
    return {"state": state, "fault": refresh["fault"], "retry_at": refresh["next_at"], "proposal": refresh["proposal"]}


def _import(
    context: AdminContext,
    method: str,
    path: str,
    document_argument: tuple[str, str | None],
    *,
    body: JsonObject,
    is_waiting: bool,
) -> JsonObject:
    """Send the document at a path, URL or standard input for import."""
    spec, entry = document_argument
    with Progress(is_silent=context.as_json) as progress:
        progress.stage(f"Reading {name_of(spec)}")
        document = read_document(spec, entry=entry)
        request = Upload(method=method, path=path, body=body, document=document, is_waiting=is_waiting)
        return upload(context.admin, progress, request)


def _replace(
    context: AdminContext, path: str, document_argument: tuple[str, str | None], wanted: JsonObject, *, is_waiting: bool
) -> JsonObject:
    """Import another document; options that are not given keep the source's values."""
    spec, entry = document_argument
    with Progress(is_silent=context.as_json) as progress:
        progress.stage(f"Reading {name_of(spec)}")
        document = read_document(spec, entry=entry)
        current, tag = context.admin.get_with_tag(path)
        kept = {name: current[name] for name in REPLACED if current.get(name) is not None}
        body = kept | wanted
        request = Upload(method="PUT", path=path, body=body, document=document, if_match=tag, is_waiting=is_waiting)
        return upload(context.admin, progress, request)


def _render_import(response: JsonObject, name: str) -> Shown:
    """Render the result of an import: a summary, or the complete report for a dry run, which stores none."""
    report, changes = to_object(response.get("report")), to_object(response.get("changes"))
    if response.get("dry_run") is True:
        ending = f"dry run of {name}; nothing was stored"
        return join_parts(render_report(report), render_changes(changes), ending)
    imported = f"{name} is imported: {render_totals(report)}"
    advice = advise(report) if count_tools(report) else explain_no_tools(report)
    return join_parts(imported, count_changes(changes), render_reasons(report), advice)
