"""Requests for items that are declared in files: create, change and replace. Declarations are sent in order."""

from collections.abc import Callable, Sequence

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import Declaration, for_each, read_declarations, text_in
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.output.printing import echo


def create_all(context: AdminContext, noun: str, declarations: Sequence[Declaration]) -> None:
    """Create the declared items and print each."""
    path = context.tenant_path(noun)
    _print(context, "created", send_all(declarations, lambda body: context.admin.send("POST", path, body)))


def update_all(context: AdminContext, noun: str, declarations: Sequence[Declaration]) -> None:
    """Change the declared members of the items that have the declared names, and print each."""

    def update(body: JsonObject) -> JsonObject:
        return context.admin.send("PATCH", *path_and_fields(context, noun, body))

    _print(context, "updated", send_all(declarations, update))


def set_all(context: AdminContext, noun: str, declarations: Sequence[Declaration]) -> None:
    """Create the declared items, or replace the items that have their names, and print each."""

    _print(
        context,
        "set",
        send_all(declarations, lambda body: context.admin.send("PUT", *path_and_fields(context, noun, body))),
    )


def declared(file: str | None, fields: JsonObject) -> Sequence[Declaration]:
    """Return the items of FILE, or the one item that the options describe.

    Raises:
        Failure: both are given, or neither, or the options have no name.
    """
    if file is not None and fields:
        raise Failure("give FILE or options, not both", ExitCode.USAGE)
    if file is not None:
        return read_declarations(file)
    if not fields.get("name"):
        raise Failure("give FILE, or --name with the other options; --help has an example", ExitCode.USAGE)
    return [Declaration(place="the options", content=fields)]


def send_all(declarations: Sequence[Declaration], act: Callable[[JsonObject], JsonObject]) -> list[JsonObject]:
    """Send the declarations and return the responses; after a refusal, print the accepted ones to standard error.

    Raises:
        Failure: a declaration was refused.
    """
    done: list[JsonObject] = []
    try:
        for_each(declarations, act, done.append)
    except Failure:
        if done:
            names = ", ".join(text_at(one, "name") or text_at(one, "uri") or text_at(one, "id") for one in done)
            echo(f"done before the refusal, {len(done)} of {len(declarations)}: {names}", err=True)
        raise
    return done


def path_and_fields(
    context: AdminContext, noun: str, body: JsonObject, address: str = "name"
) -> tuple[str, JsonObject]:
    """Return the path of the declared item, and its other fields."""
    name, fields = address_and_fields(body, address)
    return context.tenant_path(noun, name), fields


def address_and_fields(body: JsonObject, address: str) -> tuple[str, JsonObject]:
    """Return the name or id of the declared item, and its other fields."""
    name = text_in(body, address)
    if not name:
        raise Failure(f"/{address}: required", ExitCode.USAGE)
    return name, {key: value for key, value in body.items() if key != address}


def _print(context: AdminContext, verb: str, done: Sequence[JsonObject]) -> None:
    context.show(done, lambda: "\n".join(f"{verb} {text_at(one, 'name')}" for one in done))
