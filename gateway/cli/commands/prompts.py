"""`gateway prompt`: the prompts that a tenant's clients can get."""

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import Desk, at_tenant
from gateway.cli.commands.primitives import PROMPTS, find_place, make_group, render_trial
from gateway.cli.input.json_fields import JsonObject, as_objects, pick, text_at
from gateway.cli.output.tables import drop_controls

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

prompt = make_group(PROMPTS)


@prompt.command("try")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@at_tenant
def try_prompt(desk: Desk, name: str, arguments: tuple[str, ...]) -> None:
    """Get prompt NAME as an admin, and show its messages."""
    place = find_place(desk, PROMPTS, name)
    declared = as_objects(pick(desk.admin.get(place), "definition", "arguments"))
    schema = {"properties": {text_at(one, "name"): {"type": "string"} for one in declared}}
    given: JsonObject = {"arguments": parse_arguments(arguments, whole=None, schema=schema)}
    answer = desk.admin.send("POST", f"{place}/try", given)
    desk.show(answer, lambda: render_trial(answer, _render(answer)))


def _render(answer: JsonObject) -> str:
    messages = as_objects(pick(answer, "result", "messages"))
    return drop_controls("\n".join(f"{text_at(one, 'role')}: {_content(one)}" for one in messages))


def _content(message: JsonObject) -> str:
    text = text_at(message, "content", "text") or text_at(message, "content", "resource", "text")
    return text or f"[{text_at(message, 'content', 'type')}]"
