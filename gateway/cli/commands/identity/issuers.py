"""`gateway issuer`: authorization servers whose access tokens a tenant accepts."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.declarations import read_declarations
from gateway.cli.input.declared_items import send_all
from gateway.cli.input.json_fields import JsonObject, number_at, text_at, to_object
from gateway.cli.input.options import DURATION, DURATION_OR_SECONDS
from gateway.cli.input.references import parse_reference, write_reference
from gateway.cli.input.secrets import read_secret
from gateway.cli.input.times import write_duration
from gateway.cli.item_commands import add_action, add_delete, add_show, pair_of
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of, send_declared
from gateway.cli.object_names import object_argument
from gateway.cli.output.printing import Shown
from gateway.cli.output.tables import render_pairs
from gateway.kinds.identity import ISSUER

_NOUN = "issuers"
_CONFIGURED_FIELDS = (
    "client_id",
    "scopes",
    "parameters",
    "registration",
    "client_hosts",
    "grant_idle_s",
    "grant_max_s",
    "max_unchecked_s",
)
"""The configured fields of the gateway's client; its other fields come from the issuer's metadata."""
_REFERENCE = "client_secret_reference"
_CLIENT_FIELDS = (*_CONFIGURED_FIELDS, _REFERENCE)
_STATUS_FIELDS = ("redirect_uri", "authorization_url", "token_url", "introspection_url")
_CONFIGURED_INTROSPECTION = ("client_id", "url", "client_auth", "tokens", "cache_s")
"""The members of the gateway's client at the introspection endpoint; each option begins with `introspection_`."""
_INTROSPECTION_FIELDS = (*_CONFIGURED_INTROSPECTION, _REFERENCE)
_admit_option = click.option(
    "--admit",
    "admitted",
    metavar="everyone|group=NAME|scope=NAME|subject=NAME",
    multiple=True,
    help="A rule that admits users; may be repeated.",
)
_profile_option = click.option(
    "--profile", "profiles", multiple=True, help="Admit them only at this profile; may be repeated."
)
_OPTIONS = (
    click.option("--jwks-url", help="The URL of the signing keys, if the issuer has no metadata."),
    click.option("--audience", "audiences", multiple=True, help="Another accepted audience (operator only)."),
    click.option("--algorithm", "algorithms", multiple=True, help="A signature algorithm that it uses."),
    click.option("--groups-claim", help="The claim with the groups: a name or a JSON Pointer (groups)."),
    click.option("--subject-claim", help="The claim that names the person (sub)."),
    click.option(
        "--max-lifetime", "max_lifetime_s", type=DURATION_OR_SECONDS, help="Time for which a token is accepted (1h)."
    ),
    click.option("--client-id", help="The gateway's own client there, with which it signs people in."),
    click.option("--secret", metavar="VALUE", help="The client's secret; VALUE may be @FILE or env:NAME."),
    click.option(
        "--reference",
        metavar="STORE:PATH",
        help="Instead of --secret: file:PATH, vault:PATH#FIELD or variable:NAME, read by the gateway at each use.",
    ),
    click.option("--sign-in-scope", "scopes", multiple=True, help="A scope to request at sign-in (openid)."),
    click.option(
        "--parameter",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        help="A parameter of every sign-in at the provider.",
    ),
    click.option(
        "--registration/--no-registration", default=None, help="Permit MCP clients to register themselves, or not."
    ),
    click.option("--client-host", "client_hosts", multiple=True, help="A host whose client documents count (all)."),
    click.option("--grant-idle", "grant_idle_s", type=DURATION, help="Time after which an unused grant ends (14d)."),
    click.option("--grant-max", "grant_max_s", type=DURATION, help="Time after which every grant ends (90d)."),
    click.option(
        "--max-unchecked",
        "max_unchecked_s",
        type=DURATION,
        help="Time for which a sign-in counts that the provider gave no refresh token for (12h).",
    ),
    click.option("--introspection-client", "introspection_client_id", help="The client that asks it about tokens."),
    click.option(
        "--introspection-secret", metavar="VALUE", help="The client's secret; VALUE may be @FILE or env:NAME."
    ),
    click.option("--introspection-reference", metavar="STORE:PATH", help="Instead of --introspection-secret."),
    click.option("--introspection-url", help="The endpoint, if the issuer's metadata does not name it."),
    click.option(
        "--introspection-auth",
        "introspection_client_auth",
        type=click.Choice(["basic", "post"]),
        help="The place of id and secret: header or body (basic).",
    ),
    click.option(
        "--introspect",
        "introspection_tokens",
        type=click.Choice(["opaque", "jwt", "all"]),
        help="The tokens about which it is asked (opaque).",
    ),
    click.option(
        "--introspection-cache", "introspection_cache_s", type=DURATION, help="Time for which a response counts (30s)."
    ),
    click.option(
        "--require-dpop/--allow-bearer",
        "requires_dpop",
        default=None,
        help="Accept only tokens that are bound to a key of the client, or bearer tokens too.",
    ),
    click.option("--enable/--disable", "enabled", default=None, help="Accept or refuse its tokens."),
)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group("issuer", cls=Commands)
def issuer() -> None:
    """List, show, create, change and delete the issuers whose access tokens a tenant accepts; refresh their keys."""


@issuer.command("create")
@click.argument("name")
@click.argument("issuer_url", metavar="URL")
@_admit_option
@_profile_option
@_with_options
@with_tenant
def create_issuer(
    context: AdminContext,
    /,
    name: str,
    issuer_url: str,
    *,
    admitted: Sequence[str],
    profiles: Sequence[str],
    **more: object,
) -> None:
    """Accept the access tokens of the authorization server at URL, for the people whom --admit names.

    \b
    Example:
      gateway issuer create corp https://login.example.com --admit group=engineers --max-lifetime 1h
    """
    rules = _rules(admitted, profiles)
    if not rules:
        raise click.UsageError("--admit is missing: group=NAME, scope=NAME, subject=NAME or everyone")
    sign_in, introspection = _take_sign_in_client(more), _take_introspection_client(more)
    if sign_in and not sign_in.get("client_id"):
        raise click.UsageError("--client-id is missing: the other options of sign-in need it")
    if introspection and not introspection.get("client_id"):
        raise click.UsageError("--introspection-client is missing: the other options of introspection need it")
    wanted: JsonObject = {"name": name, "url": issuer_url, "rules": rules, **_drop_empty(more)}
    wanted |= _drop_empty({"sign_in": sign_in or None, "introspection": introspection or None})
    made = context.admin.send("POST", context.tenant_path(_NOUN), wanted)
    context.show(made, lambda: _describe(made))


@issuer.command("update")
@object_argument(naming_of(ISSUER))
@_admit_option
@_profile_option
@_with_options
@with_tenant
def update_issuer(
    context: AdminContext, /, name: str, admitted: Sequence[str], profiles: Sequence[str], **more: object
) -> None:
    """Replace the named members of an issuer, all its rules with --admit; sessions of its people end.

    An empty --client-id or --introspection-client removes the client. Another id needs the secret, too.

    \b
    Example:
      gateway issuer update corp --admit group=engineers --admit subject=ada
    """
    path, sign_in, introspection = (
        context.tenant_path(_NOUN, name),
        _take_sign_in_client(more),
        _take_introspection_client(more),
    )
    wanted = _drop_empty({"rules": _rules(admitted, profiles), **more})
    if sign_in:
        stored = to_object(context.admin.get(path).get("sign_in"))
        before = {member: stored[member] for member in _CONFIGURED_FIELDS if member in stored}
        wanted["sign_in"] = (before | sign_in) if sign_in.get("client_id", True) else None
    if introspection:
        stored = to_object(context.admin.get(path).get("introspection"))
        before = {member: stored[member] for member in _CONFIGURED_INTROSPECTION if member in stored}
        wanted["introspection"] = (before | introspection) if introspection.get("client_id", True) else None
    changed = context.admin.send("PATCH", path, wanted)
    context.show(changed, lambda: _describe(changed))


def _take_sign_in_client(options: dict[str, object]) -> JsonObject:
    """Remove the options of the gateway's client from `options`, and return the given ones as request fields."""
    secret, parameters = _take_secret(options, ""), cast("Sequence[str]", options.pop("parameters"))
    pairs = [parameter.partition("=") for parameter in parameters]
    if any(not mark for _, mark, _ in pairs):
        raise click.UsageError("--parameter: must be NAME=VALUE")
    given = {member: options.pop(member) for member in _CONFIGURED_FIELDS if member in options}
    return _drop_empty(
        given | secret | {"parameters": {name: value for name, _, value in pairs} or None},
    )


def _take_secret(options: dict[str, object], prefix: str) -> JsonObject:
    """Remove secret and reference of a client from `options`, and return them as request fields."""
    secret, reference = options.pop(f"{prefix}secret"), options.pop(f"{prefix}reference")
    option = f"--{prefix.replace('_', '-')}"
    return {
        "client_secret": None if secret is None else read_secret(f"{option}secret", str(secret)),
        _REFERENCE: None if reference is None else parse_reference(str(reference), f"{option}reference"),
    }


def _take_introspection_client(options: dict[str, object]) -> JsonObject:
    """Remove the options of the introspection client from `options`, and return the given ones as request fields."""
    given = {member: options.pop(f"introspection_{member}") for member in _CONFIGURED_INTROSPECTION}
    return _drop_empty(given | _take_secret(options, "introspection_"))


def _drop_empty(options: Mapping[str, object]) -> JsonObject:
    return {field: value for field, value in options.items() if value not in (None, (), [])}


def _rules(admitted: Sequence[str], profiles: Sequence[str]) -> list[JsonObject]:
    """Return one rule for each value of --admit."""
    where: JsonObject = {"profiles": list(profiles)} if profiles else {}
    rules: list[JsonObject] = []
    for value in admitted:
        kind, _, named = value.partition("=")
        if value != "everyone" and (kind not in {"group", "scope", "subject"} or not named):
            raise click.UsageError(f"--admit {value}: must be everyone, group=NAME, scope=NAME or subject=NAME")
        rules.append({**({kind: named} if named else {}), **where})
    return rules


def _describe(found: JsonObject) -> Shown:
    parts = {"sign_in": _CLIENT_FIELDS, "introspection": _INTROSPECTION_FIELDS, "status": _STATUS_FIELDS}
    pairs = [pair_of(found, name) for name in found if name not in parts]
    more = [
        (f"{part} {name}".removeprefix("status ").removesuffix("_s").replace("_", " "), _text(found, part, name))
        for part in parts
        for name in parts[part]
    ]
    return render_pairs([*pairs, *(pair for pair in more if pair[1])])


def _text(found: JsonObject, part: str, name: str) -> str:
    client = to_object(found.get(part))
    if name.endswith("_s") and client.get(name) is not None:
        return write_duration(number_at(client, name))
    reference = to_object(client.get(_REFERENCE)) if name == _REFERENCE else {}
    return write_reference(reference) if reference else text_at(client, name)


@issuer.command("set")
@click.argument("file")
@with_tenant
def set_issuers(context: AdminContext, file: str) -> None:
    """Replace issuers by those that FILE declares, as JSON or YAML; - reads stdin. What is not given has its default.

    \b
    Example:
      gateway issuer show corp --json | gateway issuer set -
    """
    done = send_all(read_declarations(file), lambda body: send_declared(context, ISSUER, "PUT", body))
    context.show(done, lambda: "\n".join(f"set {text_at(one, 'name')}" for one in done))


_NAMES = naming_of(ISSUER)
KindCommands(kind=ISSUER).add_list(issuer)
add_show(issuer, _NOUN, "Show an issuer.", describe=_describe, naming=_NAMES)
add_action(
    issuer,
    "refresh-keys",
    "Drop the cached signing keys of issuers on all replicas, and fetch them again; sessions of their people end.",
    naming=_NAMES,
    describe=lambda _, found: _describe(found),
)
add_delete(issuer, _NOUN, "Delete an issuer with its people; their sessions end.", naming=_NAMES)
