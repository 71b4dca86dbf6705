"""`gateway credential`: secrets that handlers, sources and watches refer to by name."""

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.item_commands import add_action
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of
from gateway.domain.credentials import CredentialKind, CredentialLocation
from gateway.kinds.credentials import CREDENTIAL


def _complete(context: AdminContext, verb: str, fields: JsonObject) -> JsonObject:
    """A token is sent as bearer unless a place is given, and `--secret` of a login is its password."""
    place = text_at(fields, "place")
    if verb != "update" and not place and fields.get("kind", CredentialKind.SHARED) != CredentialKind.SHARED:
        return {**fields, "place": CredentialLocation.BEARER.value}
    if "value" not in fields:
        return fields
    if verb == "update" and not place:
        path = context.tenant_path(CREDENTIAL.plural, text_at(fields, "name"))
        place = text_at(context.admin.get(path), "place")
    if place != CredentialLocation.BASIC:
        return fields
    return {**{name: value for name, value in fields.items() if name != "value"}, "password": fields["value"]}


credential = KindCommands(kind=CREDENTIAL, complete=_complete).group()


def _describe_test(name: str, tested: JsonObject) -> str:
    place = text_at(tested, "reference")
    return f"the secret of {name} was read" + (f" at {place}" if place else "")


add_action(
    credential,
    "test",
    "Read the secrets of credentials as a call would, without showing them.",
    naming=naming_of(CREDENTIAL),
    describe=_describe_test,
)
