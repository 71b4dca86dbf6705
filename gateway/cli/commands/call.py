"""`gateway call`: one tool call through MCP, like that of any client. `gateway explain`: the call without effects."""

import base64
import binascii
import json
from typing import Unpack

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.client.mcp_endpoint import McpClient
from gateway.cli.contexts.chosen import tenant_key
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.client_options import ClientOptions, client_options, describe_client
from gateway.cli.input.forms import ask_form, is_terminal
from gateway.cli.input.json_fields import JsonObject, as_text, number_at, pick, text_at, to_list, to_object, to_objects
from gateway.cli.input.options import chosen_mcp_url, mcp_options, wants_json
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.cli.output.printing import Shown, echo, show
from gateway.cli.output.tables import render_pairs, thousands
from gateway.kinds.primitives import TOOL

_UNASKED = "gateway: on a terminal, this command asks you to confirm such a call, if the policy permits it"


@click.command("call")
@object_argument(naming_of(TOOL), "tool", metavar="TOOL")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="All arguments as one JSON object.")
@mcp_options
@click.pass_context
def call_tool(context: click.Context, tool: str, arguments: tuple[str, ...], whole: str | None) -> None:
    """Call TOOL and print its result.

    A VALUE is parsed as JSON if it is JSON of a type that the tool's schema allows there; otherwise it is text. TOOL
    may be an old name that clients can still call. On a terminal, the command asks what the tool asks its user.

    \b
    Example:
      gateway --tenant acme call delete_pet petId=7 --profile support
    """
    ask = ask_form if is_terminal() else None
    url = chosen_mcp_url()
    with McpClient(url, tenant_key(url), ask=ask) as endpoint:
        found = endpoint.find(tool)
        given = parse_arguments(arguments, whole=whole, schema=found.get("inputSchema"))
        result = endpoint.call(found, given)
    show(result, lambda: render_result(result), as_json=wants_json())
    if ask is None and text_at(result, "_meta", "gateway/approval", "state") == "pending":
        echo(_UNASKED, err=True)
    if result.get("isError") is True:
        context.exit(ExitCode.FAILED)


@click.command("explain")
@object_argument(naming_of(TOOL), "tool", metavar="TOOL")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--profile", help="Simulate a client at the URL of this profile.")
@client_options
@with_tenant
def explain_tool(
    context: AdminContext,
    tool: str,
    arguments: tuple[str, ...],
    whole: str | None,
    *,
    profile: str | None,
    **client: Unpack[ClientOptions],
) -> None:
    """Explain a call of TOOL without making it.

    \b
    Example:
      gateway explain delete_pet petId=7 --profile support
    """
    place = context.tenant_path("tools", tool)
    try:
        schema = pick(context.admin.get(place), "definition", "inputSchema")
    except Failure:  # a hidden tool cannot be read; its explanation has the reason
        schema = None
    given: JsonObject = {
        "arguments": parse_arguments(arguments, whole=whole, schema=schema),
        "as": {"profile": profile, **describe_client(context, client)},
    }
    found = context.admin.send("POST", f"{place}/explain", given)
    context.show(found, lambda: _render_explanation(found))
    if text_at(found, "course") in {"refused", "hidden"}:
        click.get_current_context().exit(ExitCode.FAILED)


def _render_explanation(found: JsonObject) -> Shown:
    reason, refusal = text_at(found, "hidden_because"), to_object(found.get("refusal"))
    pairs = [
        ("tool", text_at(found, "tool")),
        ("visible", f"no: {reason}" if reason else "yes"),
        ("course", text_at(found, "course")),
        ("level", text_at(found, "level", "level")),
        *(("", as_text(each)) for each in to_list(pick(found, "level", "reasons"))),
        ("decision", f"{text_at(found, 'decision')}: {text_at(found, 'decision_reason')}"),
        *(("approvers", as_text(each)) for each in to_list(found.get("approvers"))),
    ]
    if refusal:
        pairs.append(("refusal", f"{text_at(refusal, 'code')}: {text_at(refusal, 'message')}"))
        faults = to_objects(refusal.get("faults"))
        pairs += [("", f"{text_at(fault, 'pointer') or '/'}: {text_at(fault, 'reason')}") for fault in faults]
    pairs += [("guardrail", _render_guardrail(one)) for one in to_objects(found.get("guardrails"))]
    if summary := text_at(found, "request", "summary"):
        pairs += [("request", line) for line in summary.splitlines()[:1]]
        pairs += [("", line) for line in summary.splitlines()[1:]]
    if body := text_at(found, "request", "body"):
        pairs.append(("body", body))
    if found.get("structured_once"):
        pairs.append(("result", "JSON is sent once, as structured content"))
    if threshold := number_at(found, "summary_threshold"):
        pairs.append(("result", f"more than {threshold:,} bytes are summarised; `read_result` reads the parts"))
    if found.get("selects_fields"):
        pairs.append(("result", "`_fields` selects parts of JSON results"))
    return render_pairs(pairs)


def _render_guardrail(one: JsonObject) -> str:
    findings = one.get("findings")
    found = "not run" if findings is None else ", ".join(map(as_text, to_list(findings))) or "finds nothing"
    return f"{text_at(one, 'name')} ({text_at(one, 'check')}, {text_at(one, 'action')}): {found}"


def render_result(result: JsonObject) -> str:
    """Render a result: text blocks, one line for any other content, or the structured content if there is none."""
    blocks = to_objects(result.get("content"))
    if not blocks and result.get("structuredContent") is not None:
        return json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)
    return "\n".join(_render_block(block) for block in blocks)


def _render_block(block: JsonObject) -> str:
    match block.get("type"):
        case "text":
            return _indent(text_at(block, "text"))
        case "image" | "audio":
            return _describe_bytes(text_at(block, "mimeType"), block.get("data"))
        case "resource" if pick(block, "resource", "blob") is not None:
            return _describe_bytes(text_at(block, "resource", "mimeType"), pick(block, "resource", "blob"))
        case "resource":
            return text_at(block, "resource", "text")
        case "resource_link":
            return f"[{text_at(block, 'uri')}]"
        case kind:
            return f"[{kind}]"


def _indent(text: str) -> str:
    """Indent a string that is a JSON object or array; return any other string unchanged."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, indent=2, ensure_ascii=False) if isinstance(value, dict | list) else text


def _describe_bytes(media_type: str, encoded: object) -> str:
    try:
        size = len(base64.b64decode(encoded)) if isinstance(encoded, str) else 0
    except binascii.Error:
        return f"[{media_type}, broken base64]"
    return f"[{media_type}, {thousands(size)} bytes; --json shows them]"
