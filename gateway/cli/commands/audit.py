"""`gateway audit`: lists and verifies a tenant's audit trail."""

import json
from collections.abc import Mapping
from pathlib import Path

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, as_object, as_objects, is_object, number_at, text_at
from gateway.cli.output.tables import count, render_table

_COLUMNS = ("at", "kind", "principal", "action", "target", "outcome", "correlation_id")


@click.group(cls=Commands)
def audit() -> None:
    """Read and verify a tenant's audit trail."""


@audit.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@with_tenant
def list_entries(context: AdminContext, limit: int) -> None:
    """List audit entries, newest first."""
    items = list(context.admin.pages(context.tenant_path("audit"), limit=limit))
    rows = [[text_at(item, name) for name in _COLUMNS] for item in items]
    context.show(items, lambda: render_table([name.replace("_", " ") for name in _COLUMNS], rows))


@audit.command("verify")
@click.option(
    "--since",
    "earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What an earlier run printed with --json: entries that were there then must still be.",
)
@with_tenant
def verify_audit(context: AdminContext, earlier: Path | None) -> None:
    """Verify that no entry was changed, inserted or removed; the exit code is 1 if one was.

    Compares the heads of the audit trail that are stored outside the database: in Redis, and in the locations of
    GATEWAY_AUDIT_HEADS. An empty or unreachable store is named but is not a fault. An earlier result that is given with
    --since is compared, too.
    """
    found = context.admin.get(context.tenant_path("audit", "verify"))
    if earlier is not None:
        found = _with_earlier(found, _read_earlier(earlier))
    context.show(found, lambda: _render_verified(found))
    if found.get("ok") is not True:
        click.get_current_context().exit(ExitCode.FAILED)


def _read_earlier(path: Path) -> Mapping[str, JsonObject]:
    """Return the chains of an earlier result, by writer."""
    try:
        kept: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = None
    if not is_object(kept) or not isinstance(kept.get("writers"), list):
        raise Failure(f"{path} is not what `gateway audit verify --json` prints", ExitCode.USAGE)
    return {text_at(chain, "writer"): chain for chain in as_objects(kept["writers"])}


def _with_earlier(found: JsonObject, earlier: Mapping[str, JsonObject]) -> JsonObject:
    """Add a fault for each chain that is shorter than before, or differs at the same length."""
    writers = as_objects(found.get("writers"))
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
    fault = as_object(chain.get("fault")) or {"kind": kind, "number": then, "entry": None}
    return {**chain, "ok": False, "faults": number_at(chain, "faults") + 1, "fault": fault}


def _render_verified(found: JsonObject) -> str:
    chains = as_objects(found.get("writers"))
    bad = [chain for chain in chains if chain.get("ok") is not True]
    writers = [chain for chain in chains if not text_at(chain, "writer").startswith("heads:")]
    message = f"{count(number_at(found, 'entries'), 'entry', 'entries')} of {count(len(writers), 'writer')}"
    is_whole = found.get("ok") is True
    lines = [f"ok: {message}, each follows from the one before" if is_whole else f"NOT ok: {message}"]
    lines += [_render_anchor(as_object(found.get("anchor")) or {})]
    lines += [_render_store(store) for store in as_objects(found.get("stores") or [])]
    if not bad:
        return "\n".join(lines)
    table = render_table(
        ("writer", "entries", "faults", "first fault", "number", "entry"), [_row(chain) for chain in bad]
    )
    return "\n".join([*lines, "", table])


_ANCHORS = {
    "created": "the trail begins with the tenant",
    "adopted": "the tenant is older than anchors; what was there at the first signature is trusted",
    "pending": "none yet; the tenant is older than anchors, and its next signature makes one",
    "missing": "FAULT: there is none, and there was one",
    "changed": "FAULT: no secret key of this gateway has sealed it",
    "broken": "FAULT: it replaces one that was missing or forged",
}
_STORES = {
    "matched": "matched, {compared} heads up to signature {number}",
    "empty": "nothing to compare",
    "refused": "nothing to compare; {refused} heads that no secret key of this gateway has sealed",
    "unreachable": "unreachable, nothing compared",
    "missing": "FAULT: the database ends before signature {number}",
    "changed": "FAULT: the database has another signature {number}",
}


def _render_anchor(anchor: JsonObject) -> str:
    state, made = text_at(anchor, "state"), text_at(anchor, "at")
    since = f" (since {made})" if made else ""
    return f"anchor: {state}{since}: {_ANCHORS.get(state, '')}"


def _render_store(store: JsonObject) -> str:
    message = _STORES.get(text_at(store, "state"), text_at(store, "state"))
    counted = {name: number_at(store, name) for name in ("compared", "number", "refused")}
    return f"{text_at(store, 'store')}: {message.format(**counted)}"


def _row(chain: JsonObject) -> list[str]:
    fault = as_object(chain.get("fault"))
    counted = (str(number_at(chain, name)) for name in ("entries", "faults"))
    return [
        text_at(chain, "writer"),
        *counted,
        text_at(fault, "kind"),
        text_at(fault, "number"),
        text_at(fault, "entry"),
    ]
