"""`gateway approval`: decisions about calls that need the approval of another person."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace

import click

from gateway.cli.bulk import ObjectAction, Objects, act_on_each, several_objects
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at, to_list, to_object
from gateway.cli.input.options import yes_option
from gateway.cli.kinds.records import record_group
from gateway.cli.limits import APPROVALS_POLL_S, MAX_WATCHED
from gateway.cli.object_names import find_id, naming_by_id
from gateway.cli.output.printing import Shown, echo, join
from gateway.cli.output.tables import clean, render_pairs
from gateway.domain.calls.approvals import ApprovalState
from gateway.domain.identifiers import is_minted
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


_NAMES = naming_by_id(APPROVAL, metavar="ID|TOOL")
approval = record_group(
    APPROVAL, "List, show, follow and decide the calls of a tenant that need an approval.", describe=_describe
)


def _add_decision(verb: str, about: str, comment: str, example: str) -> None:
    """Add a command that decides approvals; a name selects the one pending approval of a tool or a subject."""

    def describe(_: str, found: JsonObject) -> str:
        return f"{text_at(found, 'id')} is {text_at(found, 'state')}: {clean(_summary(found))}"

    @approval.command(verb, help=f"{about}\n\n\b\nExample:\n  gateway approval {verb} apr_0123456789 {example}")
    @several_objects(_NAMES)
    @click.option("--comment", help=comment)
    @yes_option
    @with_tenant
    def decide(context: AdminContext, objects: Objects, comment: str | None, yes: bool) -> None:
        body: Mapping[str, object] = {} if comment is None else {"comment": comment}

        def send(context: AdminContext, item: str) -> JsonObject:
            return context.admin.send("POST", context.tenant_path(APPROVAL.plural, item, verb), body)

        def find(context: AdminContext, name: str) -> str:
            return _find_pending(context, name, verb, is_sure=yes)

        pending = {"state": ApprovalState.PENDING.value} if objects.is_all else {}
        chosen = replace(objects, naming=replace(_NAMES, find=find), query={**pending, **objects.query})
        act_on_each(
            context, chosen, ObjectAction(send=send, describe=describe, verb=verb), noun="approval", is_sure=yes
        )


def _find_pending(context: AdminContext, name: str, verb: str, *, is_sure: bool) -> str:
    """Return the id of an approval; one that only a name selects is shown first, and decided after a confirmation.

    Raises:
        Failure: several pending approvals have the name, or none, or the answer was no.
    """
    if is_minted(name) or name.startswith(f"{APPROVAL.id_prefix}_"):
        return name
    found = find_id(context, _NAMES, name, query={"state": ApprovalState.PENDING.value})
    item = context.admin.get(context.tenant_path(APPROVAL.plural, found))
    requested = f"{text_at(item, 'tool')} for {text_at(item, 'subject') or text_at(item, 'requester')}"
    question = f"{verb.capitalize()} {found}: {requested}: {clean(_summary(item))}?"
    confirm(question, is_sure=is_sure)  # guard: approval-named-shown
    return found


_add_decision(
    "approve",
    "Approve pending calls of other subjects; their callers can then make each once.",
    "The reason; it is stored and recorded.",
    '--comment "agreed with Ada"',
)
_add_decision(
    "deny",
    "Deny pending calls of other subjects; equal calls are refused for an hour.",
    "The reason; the requester sees it.",
    '--comment "not during the migration"',
)


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


def _line(item: JsonObject) -> str:
    facts = (text_at(item, name) for name in ("created_at", "id", "state", "subject"))
    return "  ".join([*facts, _summary(item)]).replace("\n", " ")
