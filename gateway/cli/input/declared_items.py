"""Requests for items that are declared in files: create, change and replace. Declarations are sent in order."""

from collections.abc import Callable, Sequence

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import Declaration, for_each, text_in
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.output.printing import echo


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
