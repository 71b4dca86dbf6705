"""Objects on the command line: by name wherever an id is, with near names for a mistyped one, and shell completion."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from gateway.cli.client.admin_api import path_of
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.limits import MAX_CANDIDATES, MAX_NEAR_NAMES, MAX_READ_NAMES, MAX_SEARCH_LENGTH
from gateway.domain.identifiers import is_minted
from gateway.errors import Fault
from gateway.kinds.kind import Kind
from gateway.kinds.record import Record

if TYPE_CHECKING:
    from gateway.cli.client.admin_context import AdminContext


def _as_given(context: "AdminContext", name: str) -> str:
    del context
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The naming of the objects of one list: their placeholder, and the members by which people know them."""

    metavar: str
    find: "Callable[[AdminContext, str], str]" = _as_given
    """Returns the segment of the path of an object."""
    is_operators: bool = False
    """True if the items belong to no tenant."""
    plural: str = ""
    """The segment of the list; empty if the objects cannot be listed."""
    words: str = "object"
    is_unique: bool = True
    """False if several objects can have one name, so that reports name ids too."""
    known_by: Sequence[str] = ("name",)
    """The members of a listed object that can be written in the place of its id; the first one is completed."""

    of: Kind[Any] | Record[Any] | None = None
    """The declaration, whose filters select from all objects."""

    @property
    def example(self) -> str:
        """A name or an id of an object, for examples of commands."""
        if isinstance(self.of, Kind):
            return shlex.quote(self.of.example_address)
        if self.of is not None:
            return f"{self.of.id_prefix}_0123456789"
        return {"NAME": "pets", "KEY": "agent"}.get(self.metavar, self.metavar.lower())

    @property
    def plural_words(self) -> str:
        """The name of several objects for people."""
        return self.plural.replace("-", " ")

    def path(self, context: "AdminContext", *parts: str) -> str:
        """The path of the list, or of an object."""
        return path_of(self.plural, *parts) if self.is_operators else context.tenant_path(self.plural, *parts)

    def labels(self, item: JsonObject) -> Sequence[str]:
        """The names of a listed object."""
        return [text for member in self.known_by if (text := text_at(item, *member.split(".")))]


BY_NAME, BY_ID = Naming(metavar="NAME"), Naming(metavar="ID")


def known_by(kind: Kind[Any] | Record[Any]) -> Sequence[str]:
    """The members by which people know the objects of a declaration."""
    if isinstance(kind, Record):
        return kind.known_by
    return (kind.keyed,) if kind.keyed != "id" else ("name",)


def naming_by_key(
    kind: Kind[Any] | Record[Any], *, metavar: str, is_unique: bool = True, is_operators: bool = False
) -> Naming:
    """The naming of objects whose paths have their names."""
    return Naming(
        metavar=metavar,
        plural=kind.plural,
        words=kind.name.replace("_", " "),
        known_by=known_by(kind),
        of=kind,
        is_unique=is_unique,
        is_operators=is_operators,
    )


def naming_by_id(kind: Kind[Any] | Record[Any], *, metavar: str = "NAME|ID") -> Naming:
    """The naming of objects whose paths have their ids."""
    naming = naming_by_key(kind, metavar=metavar, is_unique=False)
    prefix = f"{kind.id_prefix}_"

    def find(context: "AdminContext", name: str) -> str:
        is_id = name.startswith(prefix) or is_minted(name)
        return name if is_id else find_id(context, naming, name, prefers=_is_active)

    return replace(naming, find=find)


def _is_active(item: JsonObject) -> bool:
    """True unless the object has ended, such as a revoked key; several keys may have had one name."""
    return text_at(item, "status", "state") in {"", "active"}


def find_id(
    context: "AdminContext",
    naming: Naming,
    name: str,
    *,
    prefers: Callable[[JsonObject], bool] | None = None,
    query: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the id of the one object that people know by this name; preferred objects take precedence.

    Raises:
        Failure: no object has the name, or several have it: then the failure has the id of each.
    """
    query = {**query, **({"search": name} if name and len(name) <= MAX_SEARCH_LENGTH else {})}
    found = [item for item in context.admin.pages(naming.path(context), query=query) if name in naming.labels(item)]
    found = ([item for item in found if prefers(item)] if prefers else []) or found
    if not found:
        near = suggest(context, naming, name)
        raise Failure(f"there is no {naming.words} {name!r}{near}", ExitCode.NOT_FOUND, is_suggested=True)
    if len(found) > 1:
        described = [
            Fault(pointer=text_at(item, "id"), reason=", ".join(naming.labels(item))) for item in found[:MAX_CANDIDATES]
        ]
        message = f"{len(found)} of the tenant's {naming.plural_words} are known as {name!r}; write an id:"
        raise Failure(message, ExitCode.USAGE, faults=described)
    return text_at(found[0], "id")


def suggest(context: "AdminContext", naming: Naming, name: str) -> str:
    """Return the end of a message about an unknown name: near names, if there are any that can be read."""
    if not naming.plural:
        return ""
    try:
        items = list(context.admin.pages(naming.path(context), limit=MAX_READ_NAMES))
    except Failure:
        return ""
    labels = list(dict.fromkeys(label for item in items for label in naming.labels(item)))
    near = get_close_matches(name, labels, n=MAX_NEAR_NAMES)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


class ObjectArgument(click.Argument):
    """An argument that names an object, or several: the shell completes it with the names in the gateway."""

    def __init__(self, param_decls: Sequence[str], *, naming: Naming, **settings: Any) -> None:
        super().__init__(param_decls, **settings)
        self.naming = naming

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Ask the gateway for names that begin as the incomplete one."""
        from gateway.cli.client.name_completion import complete_names  # noqa: PLC0415  # an HTTP client

        return complete_names(ctx, self.naming, incomplete)


def object_argument(naming: Naming, name: str = "name", *, metavar: str = "") -> Callable[[Any], Any]:
    """Add an argument that names one object."""
    return click.argument(name, cls=ObjectArgument, naming=naming, metavar=metavar or naming.metavar)


def with_near_names(context: "AdminContext", failure: Failure) -> Failure:
    """Return the failure with near names, if the running command names objects and the gateway does not find one."""
    if failure.exit_code is not ExitCode.NOT_FOUND or failure.is_suggested:
        return failure
    running = click.get_current_context()
    for parameter in running.command.params:
        name = running.params.get(str(parameter.name))
        if isinstance(parameter, ObjectArgument) and isinstance(name, str):
            failure.message += suggest(context, parameter.naming, name)
    failure.message += _suggest_tenant(context)
    failure.is_suggested = True
    return failure


def _suggest_tenant(context: "AdminContext") -> str:
    """Return near names of a tenant that does not exist, if the credential may read them."""
    tenant = context.tenant
    try:
        if not tenant or context.admin.has(path_of("tenants", tenant)):
            return ""
        slugs = [text_at(item, "slug") for item in context.admin.pages("/tenants", limit=MAX_READ_NAMES)]
    except Failure:
        return ""
    near = get_close_matches(tenant, slugs, n=MAX_NEAR_NAMES)
    return f"; did you mean --tenant {' or '.join(near)}?" if near else ""
