"""Forms that a tool shows its user (MCP elicitation), filled in on the terminal."""

import sys
from collections.abc import Mapping
from functools import partial

import click

from gateway.cli.arguments import parse_value
from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_object, to_objects
from gateway.cli.output.printing import ask_yes_no, echo, prompt


def is_terminal() -> bool:
    """True if a person can be asked: standard input and standard error are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_form(form: JsonObject) -> JsonObject:
    """Show the message of a form, ask for each of its fields, and return the response.

    Ctrl-C cancels the form. An optional field is left out by an empty line.
    """
    schema = to_object(form.get("requestedSchema"))
    required = frozenset(map(as_text, to_list(schema.get("required"))))
    echo(text_at(form, "message"), err=True)
    content: JsonObject = {}
    try:
        for name, field in to_object(schema.get("properties")).items():
            value = _ask_field(name, to_object(field), is_required=name in required)
            if value is not None:
                content[name] = value
    except click.Abort:
        echo(err=True)
        return {"action": "cancel"}
    return {"action": "accept", "content": content}


def _ask_field(name: str, field: JsonObject, *, is_required: bool) -> object:
    label = text_at(field, "title") or name
    if description := text_at(field, "description"):
        echo(description, err=True)
    if field.get("type") == "boolean":
        return ask_yes_no(label, default=field.get("default") is True)
    choices = _choices(to_object(field["items"]) if field.get("type") == "array" else field)
    for value, title in choices.items():
        echo(f"  {value}" if title == value else f"  {value}: {title}", err=True)

    given = field.get("default")
    default = None if given is None else ", ".join(map(as_text, to_list(given))) or as_text(given)
    if default is None and not is_required:
        default = ""  # with None, click asks again until there is a value
    found: object = prompt(label, default=default, read=partial(_read, field, choices))
    return found


def _read(field: JsonObject, choices: Mapping[str, str], typed: object) -> object:
    """Return the value of a line or of the default; None if the field is left out.

    Raises:
        click.BadParameter: the line is no value of the field; click asks again.
    """
    text, kind = as_text(typed), text_at(field, "type")
    if not text:
        return None
    values = [each.strip() for each in text.split(",")] if kind == "array" else [text]
    if choices and (unknown := [each for each in values if each not in choices]):
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(choices)}")
    if kind == "array":
        return values
    value = parse_value(text, field, root=field)
    if kind in {"integer", "number"} and isinstance(value, str):
        raise click.BadParameter(f"{text!r} is no {kind}")
    return value


def _choices(field: JsonObject) -> Mapping[str, str]:
    """Return the values that a field allows, with their titles; empty if it allows any."""
    named = to_objects(field.get("oneOf")) or to_objects(field.get("anyOf"))
    if named:
        return {text_at(one, "const"): text_at(one, "title") or text_at(one, "const") for one in named}
    values = [as_text(each) for each in to_list(field.get("enum"))]
    titles = [as_text(each) for each in to_list(pick(field, "enumNames"))]
    return dict(zip(values, titles, strict=True)) if len(titles) == len(values) else {each: each for each in values}
