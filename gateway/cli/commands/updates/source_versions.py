"""`gateway source`: refreshes from a URL, the review of a proposal, activation, and rollback to a kept version."""

import sys
from typing import TypedDict, Unpack

import click

from gateway.cli.bulk import ObjectAction, Objects, act_on_each, several_objects
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import name_of, read_document
from gateway.cli.input.import_options import credential_option, entry_option, login_option
from gateway.cli.input.import_request import Upload, upload
from gateway.cli.input.json_fields import JsonObject, as_text, number_at, text_at, to_object
from gateway.cli.input.options import limit_option, yes_option
from gateway.cli.input.secrets import parse_credentials
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.cli.output.printing import Shown, echo, prompt
from gateway.cli.output.progress import Progress
from gateway.cli.output.reports import join_parts, render_report, render_warnings
from gateway.cli.output.source_changes import count_changes, render_changes, render_differences
from gateway.cli.output.tables import clean, count, render_pairs, render_table, thousands
from gateway.kinds.sources import SOURCE

_NOUN = "sources"
_COLUMNS = ("version", "active", "origin", "restored", "tools", "bytes", "created", "digest")
_DIGEST_DIGITS = 12
_PROPOSAL_FIELDS = ("name", "version", "replaces", "origin", "tools", "digest", "created_by", "created_at", "obstacle")

_shrink_option = click.option("--allow-removals", is_flag=True, help="Permit a document with less than half the tools.")
_dry_run_option = click.option("--dry-run", is_flag=True, help="Only report the result; nothing is stored.")


class ActivationArguments(TypedDict):
    """The options of an activation or a rollback."""

    credentials: tuple[str, ...]
    logins: tuple[str, ...]
    dry_run: bool
    yes: bool


@click.command("refresh")
@several_objects(naming_of(SOURCE))
@_shrink_option
@yes_option
@with_tenant
def refresh_source(context: AdminContext, objects: Objects, allow_removals: bool, yes: bool) -> None:
    """Refresh sources from their URLs now; a change becomes a proposal.

    \b
    Example:
      gateway source refresh pets
    """
    body = {"allow_removals": allow_removals}
    action = ObjectAction(
        send=lambda context, name: context.admin.send("POST", _path(context, name, "refresh"), body),
        describe=lambda _, found: _render_refresh(found),
        verb="refresh",
    )
    act_on_each(context, objects, action, noun="source", is_sure=yes)


@click.command("propose")
@object_argument(naming_of(SOURCE))
@click.argument("spec", metavar="FILE")
@entry_option
@_dry_run_option
@_shrink_option
@with_tenant
def propose_source(
    context: AdminContext, name: str, spec: str, *, entry: str | None, dry_run: bool, allow_removals: bool
) -> None:
    """Propose the document in FILE (a path, or - for standard input); clients keep what they have until then.

    \b
    Example:
      gateway source propose pets pets.yaml --dry-run
    """
    document = read_document(spec, entry=entry)
    if document.url is not None:
        raise Failure("give a file; a URL is the source's own: gateway source update, then refresh", ExitCode.USAGE)
    body: JsonObject = {"dry_run": dry_run, "allow_removals": allow_removals}
    with Progress(is_silent=context.as_json) as progress:
        progress.stage(f"Reading {name_of(spec)}")
        request = Upload(method="POST", path=_path(context, name, "proposal"), body=body, document=document)
        made = upload(context.admin, progress, request)
    context.show(made, lambda: _render_dry_run(made, name) if dry_run else _render_proposal(made))


@click.command("diff")
@object_argument(naming_of(SOURCE))
@with_tenant
def show_diff(context: AdminContext, name: str) -> None:
    """Show the proposal of a source, with every difference from the active version."""
    found = context.admin.get(_path(context, name, "proposal"))
    context.show(found, lambda: _render_review(found))


@click.command("review")
@object_argument(naming_of(SOURCE))
@credential_option
@login_option
@with_tenant
def review_proposal(context: AdminContext, name: str, credentials: tuple[str, ...], logins: tuple[str, ...]) -> None:
    """Show the proposal of a source, then ask whether to activate or to refuse it; without a terminal, only show it.

    Exactly what was shown is activated; a proposal that has changed since is not.

    \b
    Example:
      gateway source review pets
    """
    path = _path(context, name, "proposal")
    found, tag = context.admin.get_with_tag(path)
    if context.as_json or not sys.stdin.isatty():
        context.show(found, lambda: _render_review(found))
        return
    echo(_render_review(found))
    choice = click.Choice(["activate", "refuse", "leave"])
    question = f"Version {text_at(found, 'version')} of {name} ({', '.join(choice.choices)})"
    decided = prompt(question, default="leave", read=lambda typed: choice.convert(typed, None, None))
    if decided == "activate":
        body = _with_credentials({}, credentials, logins)
        made = context.admin.send(
            "POST", _activation_path(context, name, text_at(found, "version")), body, if_match=tag
        )
        echo(_render_active(made))
    elif decided == "refuse":
        context.admin.send("DELETE", path, if_match=tag)
        echo(f"refused version {text_at(found, 'version')} of {name}")


@click.command("activate")
@object_argument(naming_of(SOURCE))
@click.argument("version", required=False, type=click.IntRange(min=1))
@credential_option
@login_option
@_dry_run_option
@yes_option
@with_tenant
def activate_version(
    context: AdminContext, name: str, version: int | None, **options: Unpack[ActivationArguments]
) -> None:
    """Activate the proposal of a source: number VERSION, so that no other one than the reviewed becomes active.

    Without VERSION, the proposal that waits is shown first.

    \b
    Example:
      gateway source activate pets 4
    """
    tag: str | None = None
    if version is None:
        found, tag = context.admin.get_with_tag(_path(context, name, "proposal"))
        version = number_at(found, "version")
        if not options["dry_run"]:
            echo(_render_proposal(found), err=True)
    if not options["dry_run"]:
        confirm(f"Activate version {version} of {name}?", is_sure=options["yes"])
    body = _with_credentials({"dry_run": options["dry_run"]}, options["credentials"], options["logins"])
    made = context.admin.send("POST", _activation_path(context, name, str(version)), body, if_match=tag)
    context.show(made, lambda: _render_dry_run(made, name) if options["dry_run"] else _render_active(made))


@click.command("refuse")
@object_argument(naming_of(SOURCE))
@yes_option
@with_tenant
def refuse_proposal(context: AdminContext, name: str, yes: bool) -> None:
    """Refuse the proposal of a source; refreshes do not propose the same document again.

    \b
    Example:
      gateway source refuse pets
    """
    path = _path(context, name, "proposal")
    found, tag = context.admin.get_with_tag(path)
    version = number_at(found, "version")
    confirm(f"Refuse version {version} of {name}?", is_sure=yes)
    context.admin.send("DELETE", path, if_match=tag)
    context.show({"refused": version}, lambda: f"refused version {version} of {name}")


@click.command("rollback")
@object_argument(naming_of(SOURCE))
@click.argument("version", required=False, type=click.IntRange(min=1))
@credential_option
@login_option
@_dry_run_option
@yes_option
@with_tenant
def rollback_source(
    context: AdminContext, name: str, version: int | None, **options: Unpack[ActivationArguments]
) -> None:
    """Restore the document of kept version VERSION; default: the version before the active one.

    The result is a new version under the source's present options, credentials and overrides.

    \b
    Example:
      gateway source rollback pets 3
    """
    if version is None:
        version = _find_previous(context, name)
    if not options["dry_run"]:
        confirm(f"Roll {name} back to version {version}?", is_sure=options["yes"])
    body = _with_credentials({"dry_run": options["dry_run"]}, options["credentials"], options["logins"])
    made = context.admin.send("POST", _activation_path(context, name, str(version)), body)
    context.show(made, lambda: _render_dry_run(made, name) if options["dry_run"] else _render_active(made))


@click.command("versions")
@object_argument(naming_of(SOURCE))
@limit_option
@with_tenant
def list_versions(context: AdminContext, name: str, limit: int | None) -> None:
    """List the kept versions of a source, the newest first, and their size in the database."""
    items = list(context.admin.pages(_path(context, name, "versions"), limit=limit))
    context.show(items, lambda: _render_versions(items))


COMMANDS = (
    refresh_source,
    propose_source,
    show_diff,
    review_proposal,
    activate_version,
    refuse_proposal,
    rollback_source,
    list_versions,
)


def _path(context: AdminContext, name: str, *parts: str) -> str:
    return context.tenant_path(_NOUN, name, *parts)


def _activation_path(context: AdminContext, name: str, version: str) -> str:
    return _path(context, name, "versions", version, "activate")


def _with_credentials(body: JsonObject, credentials: tuple[str, ...], logins: tuple[str, ...]) -> JsonObject:
    given = parse_credentials(credentials, logins=logins)
    return body | ({"credentials": given} if given else {})


def _find_previous(context: AdminContext, name: str) -> int:
    """Return the version before the active one; after a rollback, the version before the restored one."""
    items = list(context.admin.pages(_path(context, name, "versions")))
    [active, *_] = [item for item in items if item.get("is_active") is True]
    below = number_at(active, "restored") or number_at(active, "version")
    for item in items:
        if number_at(item, "version") < below:
            return number_at(item, "version")
    raise Failure(f"no kept version of {name} is older: see `gateway source versions {name}`", ExitCode.FAILED)


def _render_refresh(found: JsonObject) -> Shown:
    outcome = f"{text_at(found, 'name')}: {text_at(found, 'outcome')}"
    proposal = to_object(found.get("proposal"))
    return join_parts(outcome, _render_proposal(proposal) if proposal else "")


def _render_proposal(proposal: JsonObject) -> Shown:
    name, version = text_at(proposal, "name"), text_at(proposal, "version")
    changes = to_object(proposal.get("changes"))
    advice = f"review it: gateway source review {name}; activate it: gateway source activate {name} {version}"
    return join_parts(f"version {version} of {name} waits: {count_changes(changes)}", render_changes(changes), advice)


def _render_review(proposal: JsonObject) -> Shown:
    facts = [
        (fact.replace("_", " "), clean(text_at(proposal, fact))) for fact in _PROPOSAL_FIELDS if text_at(proposal, fact)
    ]
    changes = to_object(proposal.get("changes"))
    parts = (render_warnings(proposal), render_differences(changes), render_changes(changes))
    return join_parts(render_pairs(facts), *parts)


def _render_dry_run(tried: JsonObject, name: str) -> Shown:
    report, changes = to_object(tried.get("report")), to_object(tried.get("changes"))
    ending = f"{name} would become so; nothing was stored"
    return join_parts(render_report(report), render_differences(changes), render_changes(changes), ending)


def _render_active(made: JsonObject) -> Shown:
    changes = to_object(made.get("changes"))
    version = text_at(made, "status", "active_version")
    return join_parts(f"version {version} of {text_at(made, 'name')} is active", count_changes(changes))


def _render_versions(items: list[JsonObject]) -> Shown:
    rows = [
        [
            text_at(item, "version"),
            "yes" if item.get("is_active") is True else "",
            text_at(item, "origin"),
            text_at(item, "restored"),
            text_at(item, "tools"),
            thousands(number_at(item, "stored_bytes")),
            text_at(item, "created_at"),
            as_text(item.get("digest") or "")[:_DIGEST_DIGITS],
        ]
        for item in items
    ]
    total = sum(number_at(item, "stored_bytes") for item in items)
    table = render_table(_COLUMNS, rows, numbers=(4, 5))
    return join_parts(table, f"{count(len(items), 'version')}, {thousands(total)} bytes in the database")
