"""`gateway export` and `gateway schema`: a tenant's objects as manifests, and the form of manifests."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import click

from gateway.cli.client.admin_context import AdminContext, with_admin, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, text_at, to_list
from gateway.cli.manifests.local_secrets import CREDENTIALS
from gateway.cli.manifests.manifest import VERSION
from gateway.cli.manifests.members import (
    KIND,
    bare,
    is_secret,
    kind_name,
    members_by_name,
    nested_members,
)
from gateway.cli.manifests.options import output_option
from gateway.cli.manifests.source_documents import exported
from gateway.cli.manifests.yaml_writer import write_yaml
from gateway.cli.output.printing import echo
from gateway.domain.members.markers import Setter, Shape
from gateway.domain.tenancy.grants import ClientKind
from gateway.domain.tools import PrimitiveOrigin
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import API_VERSION, MANIFEST_KINDS, Declared, key_member
from gateway.kinds.members import STATUS, Member, element_of, is_declared
from gateway.kinds.sources import MANAGED_SOURCE

_EMPTY: tuple[object, ...] = (None, "", [], {})
_NO_NAME = re.compile(r"[^A-Z0-9]+")
_DOCUMENT = "---\n"


@click.command("export")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only objects of this kind. May be repeated.")
@output_option("A new or empty folder, with one file for each kind and document; default: standard output.")
@with_tenant
def export(context: AdminContext, kinds: Sequence[str], output: Path | None) -> None:
    """Print a tenant's objects as manifests, without ids, states and secrets, in the same order each time.

    Members that are empty, as they are by default, are left out. The document of a source without a URL is a file, or
    its digest on standard output. A secret is a commented line with the reference to
    set. With --json, the manifests are a JSON array.

    \b
    Example:
      gateway --tenant acme export -o platform/acme
      gateway --tenant acme export | gateway --tenant acme diff -f -
    """
    every = MANIFEST_KINDS
    if unknown := [name for name in kinds if name not in every]:
        raise Failure(f"unknown kind {unknown[0]}: one of {', '.join(every)}", ExitCode.USAGE)
    chosen = [kind for name, kind in every.items() if not kinds or name in kinds]
    if output is not None:
        _prepare(output)
    found = {kind_name(kind): list(_manifests(context, kind, output)) for kind in chosen}
    if output is not None:
        for name, manifests in found.items():
            if manifests:
                (output / f"{name}.yaml").write_text(_text(manifests), encoding="utf-8")
        return
    together = [one for manifests in found.values() for one in manifests]
    context.show(together, lambda: _text(together).rstrip("\n"))


@click.command("schema")
@with_admin
def schema(context: AdminContext) -> None:
    """Print the JSON Schema of manifests, with which editors complete and check them.

    \b
    Example:
      gateway schema > .vscode/gateway-manifest.json
    """
    echo(json.dumps(context.admin.get("/schemas/manifest"), indent=2))


def _prepare(folder: Path) -> None:
    """Create the folder; a manifest of an object that was removed since must not stay in it.

    Raises:
        Failure: it has entries, or cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Failure(f"{folder} is not empty; remove its manifests, or name a new folder", ExitCode.USAGE)
    except OSError as error:
        raise Failure(f"cannot write to {folder}: {error.strerror or error}", ExitCode.USAGE) from None


def _manifests(context: AdminContext, kind: Declared, output: Path | None) -> Iterator[JsonObject]:
    """Yield the manifests of one kind, by key, without what every tenant has and clients that registered themselves."""
    if not isinstance(kind, Kind):
        yield _manifest(kind, context.admin.get(context.tenant_path(*kind.path.split("/"))))
        return
    built_in = None if kind.built_in is None else kind.key_of(kind.built_in)
    items = context.admin.pages(context.tenant_path(kind.plural))
    key = key_member(kind) or ""
    for one in sorted(items, key=lambda item: text_at(item, key)):
        is_dynamic = text_at(one, STATUS, KIND) == ClientKind.DYNAMIC
        is_nameless = text_at(one, key) == text_at(one, "id")  # an override without its operation; no manifest has ids
        if text_at(one, key) != built_in and not is_dynamic and not is_nameless and not _is_foreign(one):
            of_document = exported(context, one, output) if kind is MANAGED_SOURCE else {}
            yield _manifest(kind, one) | of_document


def _is_foreign(shown: JsonObject) -> bool:
    """True for a primitive of another origin, such as an imported tool, which no manifest describes."""
    return text_at(shown, STATUS, "origin") not in {"", PrimitiveOrigin.CUSTOM}


def _manifest(kind: Declared, shown: JsonObject) -> JsonObject:
    key = key_member(kind)
    head: JsonObject = {VERSION: API_VERSION, KIND: kind_name(kind), **({key: shown.get(key)} if key else {})}
    members = {name: one for name, one in members_by_name(kind).items() if one.setter is not Setter.ONCE}
    return head | {
        name: value
        for name, one in members.items()
        if one.name in shown
        and not _goes_without_saying(one, value := _value(one.hint, shown[one.name]))
        and not (Shape.FILLED in one.marks and value == shown.get("id"))
    }


def _value(hint: Any, value: object) -> object:
    """The value without empty members of declared objects within it."""
    inner = element_of(bare(hint))
    if inner is not None:
        return [_value(inner, each) for each in to_list(value)] if value is not None else None
    if not is_declared(bare(hint)) or not is_object(value):
        return value
    members = nested_members(hint)
    return {
        name: found
        for name, each in value.items()
        if name in members and not _goes_without_saying(members[name], found := _value(members[name].hint, each))
    }


def _goes_without_saying(member: Member, value: object) -> bool:
    """True for an empty value that is empty by default: such a default does not change."""
    if Shape.SETTING in member.marks or member.default is MISSING:
        return False
    default: object = list[object]() if member.default == () else member.default
    return value in _EMPTY and default in _EMPTY and value == default


def _text(manifests: Sequence[JsonObject]) -> str:
    return _DOCUMENT.join(write_yaml(one) + _secret_lines(one) for one in manifests)


def _secrets_of(known: Mapping[str, Member], found: JsonObject) -> Iterator[str]:
    """Yield the names of secret members; those of an object that the manifest has are below its name."""
    for name, one in known.items():
        if is_secret(one.hint) or name == CREDENTIALS:
            yield name
        elif is_object(inner := found.get(name)) and is_declared(bare(one.hint)):
            yield from (f"{name}.{each}" for each in _secrets_of(nested_members(one.hint), inner))


def _secret_lines(manifest: JsonObject) -> str:
    """Comments with the secrets of the object, which no response shows."""
    kind = MANIFEST_KINDS[text_at(manifest, KIND)]
    secrets = list(_secrets_of(members_by_name(kind), manifest))
    if not secrets:
        return ""
    words = [text_at(manifest, KIND), text_at(manifest, key_member(kind) or "")]
    lines = ["# The gateway shows no secret, and keeps a stored one that is not given. To set one:"]
    for name in secrets:
        variable = _NO_NAME.sub("_", "_".join([*words, name]).upper()).strip("_")
        reference = f"{{env: {variable}}}"
        lines.append(f"# {name}: {f'{{SCHEME: {{value: {reference}}}}}' if name == CREDENTIALS else reference}")
    return "\n".join(lines) + "\n"
