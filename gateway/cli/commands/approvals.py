"""`gateway approval`: decisions about calls that need the approval of another person."""

import json
import time
from collections.abc import Mapping

import click

from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at, to_list, to_object
from gateway.cli.kinds.records import record_group
from gateway.cli.limits import APPROVALS_POLL_S, MAX_WATCHED
from gateway.cli.output.printing import Shown, echo, join
from gateway.cli.output.tables import clean, render_pairs
from gateway.domain.calls.approvals import ApprovalState
from gateway.kinds.approvals import APPROVAL

_REQUEST_FIELDS = (
    "id",
    "state",
    "action",
    "tool",
    "profile",
    "requester",
    "subject",
    "created_at",
    "expires_at",
    "decided_by",
)
_DECISION_FIELDS = ("decided_at", "comment", "started_at", "ended_at", "outcome", "correlation_id", "digest")


def _summary(item: JsonObject) -> str:
    request = to_object(item.get("request"))
    return " ".join(part for part in (text_at(request, "method"), text_at(request, "url")) if part)


def _describe(found: JsonObject) -> Shown:
    request = to_object(found.get("request"))
    pairs = [(name.replace("_", " "), text_at(found, name)) for name in (*_REQUEST_FIELDS, *_DECISION_FIELDS)]
    warnings = [f"! {clean(str(fact))}" for fact in to_list(found.get("warnings"))]
    headers = [": ".join(str(part) for part in to_list(header)) for header in to_list(request.get("headers"))]
    sent = [_summary(found), *headers, *(["", body] if (body := text_at(request, "body")) else [])]
    return join([render_pairs(pairs), "", *warnings, "", *sent])


approval = record_group(
    APPROVAL, "List, show, follow and decide the calls of a tenant that need an approval.", describe=_describe
)


@approval.command("approve")
@click.argument("name", metavar="ID")
@click.option("--comment", help="The reason; it is stored and recorded.")
@with_tenant
def approve_call(context: AdminContext, name: str, comment: str | None) -> None:
    """Approve a pending call of another subject; its caller can then make it once.

    \b
    Example:
      gateway approval approve apr_0123456789 --comment "agreed with Ada"
    """
    _decide(context, name, "approve", comment)


@approval.command("deny")
@click.argument("name", metavar="ID")
@click.option("--comment", help="The reason; the requester sees it.")
@with_tenant
def deny_call(context: AdminContext, name: str, comment: str | None) -> None:
    """Deny a pending call of another subject; equal calls are refused for an hour.

    \b
    Example:
      gateway approval deny apr_0123456789 --comment "not during the migration"
    """
    _decide(context, name, "deny", comment)


@approval.command("watch")
@click.option("--count", type=click.IntRange(min=1), help="Exit after this number of lines; default: on Ctrl-C.")
@with_tenant
def watch_approvals(context: AdminContext, count: int | None) -> None:
    """Print pending calls, and a line for each new or changed approval, until Ctrl-C.

    The command reads the newest 100 approvals every two seconds.
    """
    seen: dict[str, str] = {}
    printed = 0
    is_first = True
    while True:
        items = list(context.admin.pages(context.tenant_path(APPROVAL.plural), limit=MAX_WATCHED))
        for item in reversed(items):
            name, state = text_at(item, "id"), text_at(item, "state")
            is_printed = seen.get(name) != state and (not is_first or state == ApprovalState.PENDING)
            if is_printed:
                echo(json.dumps(item) if context.as_json else _line(item))
                printed += 1
            if printed == count:
                return
        seen, is_first = {text_at(item, "id"): text_at(item, "state") for item in items}, False
        time.sleep(APPROVALS_POLL_S)  # the REST API has no stream of approvals; the command ends with Ctrl-C or --count


def _decide(context: AdminContext, name: str, verb: str, comment: str | None) -> None:
    body: Mapping[str, object] = {} if comment is None else {"comment": comment}
    found = context.admin.send("POST", context.tenant_path(APPROVAL.plural, name, verb), body)
    context.show(found, lambda: f"{text_at(found, 'id')} is {text_at(found, 'state')}: {clean(_summary(found))}")


def _line(item: JsonObject) -> str:
    facts = (text_at(item, name) for name in ("created_at", "id", "state", "subject"))
    return "  ".join([*facts, _summary(item)]).replace("\n", " ")
