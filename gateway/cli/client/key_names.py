"""Keys on the command line: by id, or by a name that only one key of the tenant has."""

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import text_at

_PREFIX = "key_"


def find_key_id(context: AdminContext, given: str) -> str:
    """Return the id of the tenant's key with this id or name; keys that are not revoked take precedence.

    Raises:
        Failure: no key has the name, or several have it.
    """
    if given.startswith(_PREFIX):
        return given
    named = [item for item in context.admin.pages(context.tenant_path("keys")) if text_at(item, "name") == given]
    found = [item for item in named if text_at(item, "state") != "revoked"] or named
    if not found:
        raise Failure(f"the tenant has no key with the id or name {given}", ExitCode.NOT_FOUND)
    if len(found) > 1:
        ids = ", ".join(text_at(item, "id") for item in found)
        raise Failure(f"{len(found)} keys have the name {given}; give an id: {ids}", ExitCode.USAGE)
    return text_at(found[0], "id")
