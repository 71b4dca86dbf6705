"""What the nouns whose items are declared in files have in common: every declaration sent, one after the other."""

from collections.abc import Callable, Sequence

import click

from gateway.cli.client.admin_context import Desk, confirm
from gateway.cli.exit_codes import Exit
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import Declaration, for_each, read_declarations, text_in
from gateway.cli.input.json_fields import JsonObject, text_at


def create_all(desk: Desk, noun: str, declarations: Sequence[Declaration]) -> None:
    """Create the declared items, and print each."""
    path = desk.tenant_path(noun)
    _tell(desk, "created", send_all(declarations, lambda body: desk.admin.send("POST", path, body)))


def replace_all(desk: Desk, noun: str, declarations: Sequence[Declaration]) -> None:
    """Replace the items of the same names, and print each."""
    _tell(desk, "updated", send_all(declarations, lambda body: _replace(desk, noun, body)))


def set_all(desk: Desk, noun: str, declarations: Sequence[Declaration]) -> None:
    """Create the declared items or replace those of the same names, and print each."""

    _tell(desk, "set", send_all(declarations, lambda body: desk.admin.send("PUT", *_named(desk, noun, body))))


def declared(file: str | None, fields: JsonObject) -> Sequence[Declaration]:
    """The items of FILE, or the one item that the options describe.

    Raises:
        Failure: both are given, or neither, or the options have no name.
    """
    if file is not None and fields:
        raise Failure("give FILE or options, not both", Exit.USAGE)
    if file is not None:
        return read_declarations(file)
    if not fields.get("name"):
        raise Failure("give FILE, or --name with the other options; --help has an example", Exit.USAGE)
    return [Declaration(place="the options", content=fields)]


def delete_one(desk: Desk, noun: str, name: str, *, is_sure: bool) -> None:
    """Delete one item, once the person is sure, and say so."""
    confirm(f"Delete {noun.removesuffix('s')} {name}?", is_sure=is_sure)
    desk.admin.send("DELETE", desk.tenant_path(noun, name))
    desk.show({"deleted": name}, lambda: f"deleted {name}")


def send_all(declarations: Sequence[Declaration], act: Callable[[JsonObject], JsonObject]) -> list[JsonObject]:
    """What was answered to each; those done before a refusal are named on standard error.

    Raises:
        Failure: one was refused.
    """
    done: list[JsonObject] = []
    try:
        for_each(declarations, act, done.append)
    except Failure:
        for answer in done:
            click.echo(f"done: {text_at(answer, 'id') or text_at(answer, 'name')}", err=True)
        raise
    return done


def _replace(desk: Desk, noun: str, body: JsonObject) -> JsonObject:
    path, fields = _named(desk, noun, body)
    _, tag = desk.admin.get_with_tag(path)
    return desk.admin.send("PUT", path, fields, if_match=tag)


def _named(desk: Desk, noun: str, body: JsonObject) -> tuple[str, JsonObject]:
    """The path of what a declaration names, and its other fields."""
    name = text_in(body, "name")
    if not name:
        raise Failure("/name: required", Exit.USAGE)
    return desk.tenant_path(noun, name), {key: value for key, value in body.items() if key != "name"}


def _tell(desk: Desk, verb: str, done: Sequence[JsonObject]) -> None:
    desk.show(done, lambda: "\n".join(f"{verb} {text_at(one, 'name')}" for one in done))
