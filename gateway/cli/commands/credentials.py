"""`gateway credential`: secrets to which a tenant's handlers refer by name; never shown again."""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.declared_items import create_all, declared, set_all, update_all
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.references import parse_reference
from gateway.cli.input.secrets import read_secret
from gateway.cli.item_commands import add_delete, add_list, add_show
from gateway.domain.credentials import CredentialKind, CredentialLocation

_NOUN = "credentials"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_SHOWN_FIELDS = (
    "name",
    "id",
    "kind",
    "place",
    "field",
    "origins",
    "audience",
    "issuer",
    "client_id",
    "token_url",
    "scopes",
    "server",
    "authorization_url",
    "revocation_url",
    "redirect_uri",
    "reference",
    "created_at",
    "updated_at",
)


class CredentialOptions(TypedDict):
    """The fields of a credential, as options."""

    name: str | None
    place: str | None
    field: str | None
    username: str | None
    secret: str | None
    origins: tuple[str, ...]
    kind: str | None
    audience: str | None
    issuer: str | None
    client_id: str | None
    scopes: tuple[str, ...]
    server: str | None
    authorization_url: str | None
    token_url: str | None
    revocation_url: str | None
    parameters: tuple[str, ...]
    reference: str | None


def credential_options(command: _Command) -> _Command:
    """Add FILE and the fields of one credential to a command."""
    place = click.Choice([place.value for place in CredentialLocation])
    kind = click.Choice([kind.value for kind in CredentialKind])
    for decorate in (
        click.option(
            "--parameter",
            "parameters",
            multiple=True,
            metavar="NAME=VALUE",
            help="A further parameter of authorization requests, for accounts of users; may be repeated.",
        ),
        click.option("--revocation-url", help="The revocation endpoint, for a server without metadata."),
        click.option("--token-url", help="The token endpoint, for a server without metadata."),
        click.option("--authorization-url", help="The authorization endpoint, for a server without metadata."),
        click.option("--server", help="The authorization server at which users connect accounts, by its metadata."),
        click.option("--scope", "scopes", multiple=True, help="A scope that is requested; may be repeated."),
        click.option(
            "--client-id", help="The client id, for an exchange or accounts of users; --secret is the client secret."
        ),
        click.option("--issuer", help="The issuer that exchanges tokens."),
        click.option("--audience", help="The audience of the token of an exchange or assertion."),
        click.option(
            "--origin",
            "origins",
            multiple=True,
            help="An origin that receives it; may be repeated. No other origin does.",
        ),
        click.option("--secret", metavar="VALUE", help="The value or password; VALUE may be @FILE or env:NAME."),
        click.option(
            "--reference",
            metavar="STORE:PATH",
            help="Instead of --secret: file:PATH, vault:PATH#FIELD or variable:NAME, read by the gateway at each use.",
        ),
        click.option("--username", help="The user name, for basic."),
        click.option("--field", help="The name of the header or query parameter."),
        click.option("--place", type=place, help="The location in a request; for a token: bearer."),
        click.option(
            "--kind",
            type=kind,
            help="The identity that the upstream sees: one for all callers (shared), or the caller's.",
        ),
        click.option("--name", help="The name by which handlers refer to it."),
        click.argument("file", required=False),
    ):
        command = decorate(command)
    return command


@click.group(cls=Commands)
def credential() -> None:
    """List, show, declare and delete the stored credentials of a tenant."""


@credential.command("create")
@credential_options
@with_tenant
def create_credential(context: AdminContext, file: str | None, **options: Unpack[CredentialOptions]) -> None:
    """Store every credential that FILE declares (JSON or YAML; - reads stdin), or the one that the options describe.

    \b
    Example:
      gateway credential create --name vendor --place bearer \\
        --origin https://api.example.com --secret env:VENDOR_TOKEN
      gateway credential create --name hr --kind assertion \\
        --origin https://hr.internal --audience https://hr.internal
      gateway credential create --name tracker --kind user --client-id gateway \\
        --secret env:TRACKER_SECRET --server https://login.example.com --origin https://api.example.com
    """
    create_all(context, _NOUN, declared(file, _fields(options)))


@credential.command("update")
@credential_options
@with_tenant
def update_credential(context: AdminContext, file: str | None, **options: Unpack[CredentialOptions]) -> None:
    """Change what FILE or the options give; everything else stays, as does the secret while no receiver changes.

    \b
    Example:
      gateway credential update --name vendor --secret @key.txt
      gateway credential update --name vendor --place header --field X-Key
    """
    name, place = options["name"], options["place"]
    if name and place is None and options["secret"] is not None:
        place = text_at(context.admin.get(context.tenant_path(_NOUN, name)), "place")  # decides the secret's member
    fields = _fields({**options, "place": place})
    update_all(context, _NOUN, declared(file, fields))


@credential.command("set")
@credential_options
@with_tenant
def set_credential(context: AdminContext, file: str | None, **options: Unpack[CredentialOptions]) -> None:
    """Create or replace every credential that FILE declares, or the one that the options describe.

    \b
    Example:
      gateway credential set --name legacy --place basic --username robot \\
        --origin https://old.example.com --secret env:LEGACY_PASSWORD
    """
    set_all(context, _NOUN, declared(file, _fields(options)))


@credential.command("test")
@click.argument("name")
@with_tenant
def test_credential(context: AdminContext, name: str) -> None:
    """Read the secret of a credential as a call would, without showing it."""
    tested = context.admin.send("POST", context.tenant_path(_NOUN, name, "test"))
    place = text_at(tested, "reference")
    context.show(tested, lambda: f"the secret of {name} was read" + (f" at {place}" if place else ""))


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Return the parameters by name."""
    if wrong := [each for each in given if "=" not in each]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", param_hint="--parameter")
    return {name: value for name, _, value in (each.partition("=") for each in given)}


def _fields(options: CredentialOptions) -> JsonObject:
    secret = options["secret"]
    is_delegated = options["kind"] not in (None, CredentialKind.SHARED)
    field_name = "password" if options["place"] == CredentialLocation.BASIC else "value"
    fields: JsonObject = {
        "name": options["name"],
        "kind": options["kind"],
        "place": options["place"] or (CredentialLocation.BEARER.value if is_delegated else None),
        "audience": options["audience"],
        "issuer": options["issuer"],
        "client_id": options["client_id"],
        "scopes": list(options["scopes"]) or None,
        "server": options["server"],
        "authorization_url": options["authorization_url"],
        "token_url": options["token_url"],
        "revocation_url": options["revocation_url"],
        "parameters": _pairs(options["parameters"]) or None,
        "field": options["field"],
        "username": options["username"],
        field_name: None if secret is None else read_secret("--secret", secret),
        "reference": None if options["reference"] is None else parse_reference(options["reference"]),
        "origins": list(options["origins"]) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


add_list(
    credential,
    _NOUN,
    "List a tenant's credentials, without their secrets.",
    ("name", "kind", "place", "field", "origins"),
)
add_show(
    credential,
    _NOUN,
    "Show a credential, without its secret.",
    fields=_SHOWN_FIELDS,
)
add_delete(credential, _NOUN, "Delete a credential that is not in use.")
