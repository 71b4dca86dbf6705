"""`gateway audit`: lists and verifies a tenant's audit trail."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.audit_sinks import sink
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, number_at, text_at, to_object, to_objects
from gateway.cli.input.times import DaysType, TimeType
from gateway.cli.item_commands import render_items
from gateway.cli.kinds.output import render_object
from gateway.cli.kinds.single_commands import SingletonCommands
from gateway.cli.limits import MAX_REMEMBERED_IDS
from gateway.cli.output.printing import Shown, echo, join
from gateway.cli.output.tables import clean, count, render_table
from gateway.cli.output.times import show_time, whole_seconds
from gateway.domain.audit import FILTERS, AuditKind
from gateway.kinds.singletons import RETENTION

_INSTALLATION = click.option(
    "--installation",
    is_flag=True,
    help="Use the trail of the installation: tenants created and deleted, operators, ceilings, private upstreams.",
)
_RECONNECT_OVERLAP = timedelta(seconds=60)
_TYPES: Mapping[str, click.ParamType[Any]] = {
    "kind": click.Choice([kind.value for kind in AuditKind]),
    "since": TimeType(),
    "until": TimeType(),
}
_COLUMNS = ("at", "kind", "principal", "action", "target", "outcome", "correlation_id")


@click.group(cls=Commands)
def audit() -> None:
    """Read and verify a tenant's audit trail."""


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each filter; the command receives those that were given as a mapping `filters`."""

    @wraps(command)
    def run(*args: object, **options: object) -> None:
        given = {name: _filter_text(value) for name in FILTERS if (value := options.pop(name)) is not None}
        command(*args, filters=given, **options)

    for name, description in reversed(list(FILTERS.items())):
        run = click.option(f"--{name.replace('_', '-')}", name, type=_TYPES.get(name), help=description)(run)
    return run


def _filter_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


@audit.command("list")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The maximum number of entries."
)
@with_filters
@_INSTALLATION
@with_tenant
def list_entries(context: AdminContext, limit: int, filters: Mapping[str, str], *, installation: bool) -> None:
    """List audit entries, newest first."""
    items = list(context.admin.pages(_path_of(context, installation), limit=limit, query=filters))
    context.show(items, lambda: render_items(items, _COLUMNS))


@audit.command("explain")
@click.argument("of", metavar="ID")
@_INSTALLATION
@with_tenant
def explain_entries(context: AdminContext, of: str, *, installation: bool) -> None:
    """Show the rule that decided then; ID is that of an entry, or the correlation id of a request."""
    found = context.admin.get(f"{_path_of(context, installation, 'explain')}?{urlencode({'of': of})}")
    items = to_objects(found.get("items"))
    context.show(found, lambda: "\n".join(_render_explained(item) for item in items))


def _path_of(context: AdminContext, installation: bool, *parts: str) -> str:
    """The path of a tenant's trail, or of that of the installation."""
    return path_of("audit", *parts) if installation else context.tenant_path("audit", *parts)


def _render_explained(item: JsonObject) -> str:
    entry = to_object(item.get("entry"))
    return f"{show_time(text_at(entry, 'at'))}  {text_at(item, 'explanation')}".replace("; ", "\n    ")


@audit.command("verify")
@click.option(
    "--since",
    "earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The output of an earlier run with --json; its entries must still exist.",
)
@_INSTALLATION
@with_tenant
def verify_audit(context: AdminContext, earlier: Path | None, *, installation: bool) -> None:
    """Verify that no entry was changed, inserted or removed; the exit code is 1 if one was.

    Compares the heads of the audit trail that are stored outside the database: in Redis, and in the locations of
    GATEWAY_AUDIT_HEADS. An empty or unreachable store is listed, but is not a fault. An earlier result that is given
    with --since is compared, too.
    """
    found = context.admin.get(_path_of(context, installation, "verify"))
    if earlier is not None:
        found = _with_earlier(found, _read_earlier(earlier))
    context.show(found, lambda: _render_verified(found))
    if found.get("ok") is not True:
        click.get_current_context().exit(ExitCode.FAILED)


@audit.command("export")
@with_filters
@click.option(
    "--output", type=click.File("wb", lazy=True), default="-", help="The file to write; default: standard output."
)
@_INSTALLATION
@with_tenant
def export_audit(context: AdminContext, output: IO[bytes], filters: Mapping[str, str], *, installation: bool) -> None:
    """Export the audit trail as signed lines of JSON, which can be verified without the gateway.

    Without a filter, the whole trail is exported and verified. `python -m gateway.cli.audit_verifier` verifies an
    export with the public key that `gateway audit keys` names; its file works on its own.
    """
    for chunk in context.admin.download(_path_of(context, installation, "export"), filters):
        output.write(chunk)


@audit.command("tail")
@click.option("--since", "beginning", type=TimeType(), help="Also print the entries at or after this time.")
@_INSTALLATION
@with_tenant
def follow_audit(context: AdminContext, beginning: datetime | None, *, installation: bool) -> None:
    """Print entries as they are committed, until Ctrl-C.

    After a lost connection the command reconnects, and repeats no entry of the last minute. Entries that an outage
    delayed for longer may be missing then; a sink misses none. With --json each line is an entry as in an export.
    """
    path = _path_of(context, installation, "tail")
    seen: deque[str] = deque(maxlen=MAX_REMEMBERED_IDS)
    since = None if beginning is None else beginning.isoformat()
    while True:
        connected_at, latest = datetime.now(UTC).isoformat(), ""
        try:
            for entry in _stream_entries(context, path, since):
                latest = max(latest, text_at(entry, "at"))
                if text_at(entry, "id") not in seen:
                    seen.append(text_at(entry, "id"))
                    _print_entry(context, entry)
        except Failure as failure:
            if failure.exit_code is not ExitCode.UNREACHABLE or (since is None and not seen):
                raise
        since = (datetime.fromisoformat(latest or connected_at) - _RECONNECT_OVERLAP).isoformat()
        time.sleep(1.0)


def _stream_entries(context: AdminContext, path: str, since: str | None) -> Iterator[JsonObject]:
    """Yield the entries that one connection receives."""
    wanted = {"for_s": "60"} | ({} if since is None else {"since": since})
    rest = b""
    for chunk in context.admin.download(path, wanted):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (to_object(json.loads(line)) for line in lines if line)


def _print_entry(context: AdminContext, entry: JsonObject) -> None:
    line = " ".join(text_at(entry, name) or "-" for name in ("at", "kind", "principal", "action", "target", "outcome"))
    echo(json.dumps(entry) if context.as_json else clean(whole_seconds(line)))


@audit.command("keys")
@_INSTALLATION
@with_tenant
def list_keys(context: AdminContext, *, installation: bool) -> None:
    """List the public keys that sign exports of the tenant's audit trail; note them where the exports are verified."""
    found = context.admin.get(_path_of(context, installation, "export-keys"))
    rows = [[text_at(key, "id"), text_at(key, "public")] for key in to_objects(found.get("keys"))]
    context.show(found, lambda: join([f"tenant {text_at(found, 'tenant')}", render_table(("key", "public"), rows)]))


retention = SingletonCommands(
    kind=RETENTION,
    name="retention",
    path="audit retention",
    about="Show, try, set or change the retention of audit entries; removals are recorded and signed.",
).group()


@retention.command("try")
@click.argument("days", type=DaysType())
@with_tenant
def try_retention(context: AdminContext, days: int) -> None:
    """Show the entries that a retention of DAYS would remove; nothing is stored or removed.

    \b
    Example:
      gateway audit retention try 90d
    """
    found = context.admin.get(f"{context.tenant_path('audit', 'retention')}?days={days}")
    context.show(found, lambda: render_object(RETENTION, found))


audit.add_command(retention)
audit.add_command(sink)


def _read_earlier(path: Path) -> Mapping[str, JsonObject]:
    """Return the chains of an earlier result, by writer."""
    try:
        kept: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = None
    if not is_object(kept) or not isinstance(kept.get("writers"), list):
        raise Failure(f"{path} is not the output of `gateway audit verify --json`", ExitCode.USAGE)
    return {text_at(chain, "writer"): chain for chain in to_objects(kept["writers"])}


def _with_earlier(found: JsonObject, earlier: Mapping[str, JsonObject]) -> JsonObject:
    """Add a fault for each chain that is shorter than before, or differs at the same length."""
    writers = to_objects(found.get("writers"))
    absent: list[JsonObject] = [
        {"writer": writer, "entries": 0, "first": 0, "last": 0, "head": "", "ok": True, "faults": 0, "fault": None}
        for writer in earlier.keys() - {text_at(chain, "writer") for chain in writers}
    ]
    compared = [_compare(chain, earlier.get(text_at(chain, "writer"))) for chain in [*writers, *absent]]
    is_whole = found.get("ok") is True and all(chain.get("ok") is True for chain in compared)
    return {**found, "ok": is_whole, "writers": compared}


def _compare(chain: JsonObject, before: JsonObject | None) -> JsonObject:
    if before is None:
        return chain
    now, then = number_at(chain, "last"), number_at(before, "last")
    if now < then:
        kind = "shortened"
    elif now == then and chain.get("head") != before.get("head"):
        kind = "changed"
    else:
        return chain
    fault = to_object(chain.get("fault")) or {"kind": kind, "number": then, "entry": None}
    return {**chain, "ok": False, "faults": number_at(chain, "faults") + 1, "fault": fault}


def _render_verified(found: JsonObject) -> Shown:
    chains = to_objects(found.get("writers"))
    bad = [chain for chain in chains if chain.get("ok") is not True]
    writers = [chain for chain in chains if not text_at(chain, "writer").startswith("heads:")]
    message = f"{count(number_at(found, 'entries'), 'entry', 'entries')} of {count(len(writers), 'writer')}"
    is_whole = found.get("ok") is True
    removed = number_at(found, "removed")
    message += f", {removed} more removed by retention" if removed else ""
    lines = [f"ok: {message}, all chains are intact" if is_whole else f"NOT ok: {message}"]
    lines += [_render_anchor(to_object(found.get("anchor")) or {})]
    lines += [_render_store(store) for store in to_objects(found.get("stores") or [])]
    if not bad:
        return "\n".join(lines)
    table = render_table(
        ("writer", "entries", "faults", "first fault", "number", "entry"), [_row(chain) for chain in bad]
    )
    return join([*lines, "", table])


_ANCHOR_MESSAGES = {
    "created": "the trail is complete from the creation of the tenant",
    "adopted": "the tenant is older than anchors; entries before the first signature are trusted",
    "pending": "none yet; the next signature of the tenant creates one",
    "missing": "FAULT: the anchor was deleted",
    "changed": "FAULT: no configured secret key sealed it",
    "broken": "FAULT: it replaces a missing or forged anchor",
}
_STORE_MESSAGES = {
    "matched": "matched, {compared} heads up to signature {number}",
    "empty": "nothing to compare",
    "refused": "nothing to compare; no configured secret key sealed {refused} heads",
    "unreachable": "unreachable, nothing compared",
    "missing": "FAULT: the database ends before signature {number}",
    "changed": "FAULT: the database has another signature {number}",
}


def _render_anchor(anchor: JsonObject) -> str:
    state, made = text_at(anchor, "state"), show_time(text_at(anchor, "at"))
    since = f" (since {made})" if made else ""
    return f"anchor: {state}{since}: {_ANCHOR_MESSAGES.get(state, '')}"


def _render_store(store: JsonObject) -> str:
    message = _STORE_MESSAGES.get(text_at(store, "state"), text_at(store, "state"))
    counted = {name: number_at(store, name) for name in ("compared", "number", "refused")}
    return f"{text_at(store, 'store')}: {message.format(**counted)}"


def _row(chain: JsonObject) -> list[str]:
    fault = to_object(chain.get("fault"))
    counted = (str(number_at(chain, name)) for name in ("entries", "faults"))
    return [
        text_at(chain, "writer"),
        *counted,
        text_at(fault, "kind"),
        text_at(fault, "number"),
        text_at(fault, "entry"),
    ]
