"""`gateway prompt`: the prompts that a tenant's clients can get."""

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.primitives import find_place, make_group, render_trial
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_objects
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.kinds.primitives import PROMPT

prompt = make_group(PROMPT)


@prompt.command("try")
@object_argument(naming_of(PROMPT))
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@with_tenant
def try_prompt(context: AdminContext, name: str, arguments: tuple[str, ...]) -> None:
    """Get prompt NAME as an admin, and show its messages.

    \b
    Example:
      gateway prompt try summarise topic=orders
    """
    path = find_place(context, PROMPT, name)
    declared = to_objects(pick(context.admin.get(path), "definition", "arguments"))
    schema = {"properties": {text_at(one, "name"): {"type": "string"} for one in declared}}
    given: JsonObject = {"arguments": parse_arguments(arguments, whole=None, schema=schema)}
    response = context.admin.send("POST", f"{path}/try", given)
    context.show(response, lambda: render_trial(response, _render(response)))


def _render(response: JsonObject) -> str:
    messages = to_objects(pick(response, "result", "messages"))
    return "\n".join(f"{text_at(one, 'role')}: {_content(one)}" for one in messages)


def _content(message: JsonObject) -> str:
    text = text_at(message, "content", "text") or text_at(message, "content", "resource", "text")
    return text or f"[{text_at(message, 'content', 'type')}]"
