"""`gateway tool`, `resource`, `resource-template` and `prompt`: a tenant's primitives, declared in files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import Declaration, for_each, only_one, read_declarations, text_in
from gateway.cli.input.declared_items import send_all
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_objects
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.options import yes_option
from gateway.cli.output.tables import render_pairs, render_table, shorten

_DESCRIPTION_WIDTH = 60
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandNoun:
    """One family of primitives: its path segment in the API, and the members with the name or URI of an item."""

    words: str
    segment: str
    member: str
    shown: str
    prefix: str

    @property
    def group(self) -> str:
        """The name of the family's command group."""
        return self.words.replace(" ", "-")

    @property
    def metavar(self) -> str:
        """The placeholder in the help for the name or URI of an item."""
        return "NAME" if self.member == "name" else "URI"


TOOLS = CommandNoun(words="tool", segment="tools", member="name", shown="name", prefix="tol_")
PROMPTS = CommandNoun(words="prompt", segment="prompts", member="name", shown="name", prefix="pro_")
RESOURCES = CommandNoun(words="resource", segment="resources", member="uri", shown="uri", prefix="res_")
TEMPLATES = CommandNoun(
    words="resource template",
    segment="resource-templates",
    member="uriTemplate",
    shown="uri_template",
    prefix="tpl_",
)


def make_group(noun: CommandNoun) -> click.Group:
    """Build the command group of a family, with the commands that all families have."""
    about = f"List, show, declare and switch a tenant's {noun.words}s."
    group = Commands(noun.group, help=about)
    for make in (
        _list_command,
        _show_command,
        _create_command,
        _update_command,
        _set_command,
        _delete_command,
        _validate_command,
    ):
        group.add_command(make(noun))
    group.add_command(_switch_command(noun, "enable", is_enabled=True))
    group.add_command(_switch_command(noun, "disable", is_enabled=False))
    return group


def find_place(context: AdminContext, noun: CommandNoun, name: str) -> str:
    """Return the path of the item with this name, URI or id.

    Raises:
        Failure: there is no such item.
    """
    if name.startswith(noun.prefix) or (noun.member == "name" and _is_plain(name)):
        return context.tenant_path(noun.segment, name)
    path = context.tenant_path(noun.segment)
    if noun.member == "name":
        items = list(context.admin.pages(path))
    else:
        items = to_objects(context.admin.get(f"{path}?uri={quote(name, safe='')}").get("items"))
    item = next((item for item in items if text_at(item, noun.shown) == name), None)
    if item is None:
        raise Failure(f"no such {noun.words}", ExitCode.NOT_FOUND)
    return context.tenant_path(noun.segment, text_at(item, "id"))


def render_trial(response: JsonObject, result: str) -> str:
    """Render a tried call: the request, which is named as sent only if it certainly was, then the result."""
    is_request = bool(text_at(response, "request", "url"))
    is_refused = pick(response, "result", "_meta", "gateway/error") is not None
    label = ("request" if is_refused else "sent") if is_request else "call"
    lines = [f"{label}: {text_at(response, 'request', 'summary')}"]
    if body := text_at(response, "request", "body"):
        lines.append(f"body: {shorten(body, 200)}")
    return "\n".join([*lines, "", result])


def _list_command(noun: CommandNoun) -> click.Command:
    @list_options(noun.segment)
    @with_tenant
    def run(context: AdminContext, wanted: ListArguments) -> None:
        items = list(context.admin.pages(context.tenant_path(noun.segment), limit=wanted.limit, query=wanted.query))
        titles = (noun.shown.replace("_", " "), "safety", "from", "description")
        rows = [(text_at(item, noun.shown), _level(item), _origin(item), _summary(item)) for item in items]
        context.show(items, lambda: render_table(titles, rows))

    return click.command("list", help=f"List a tenant's {noun.words}s, wherever they come from.")(run)


def _show_command(noun: CommandNoun) -> click.Command:
    @click.argument("name", metavar=noun.metavar)
    @with_tenant
    def run(context: AdminContext, name: str) -> None:
        place = find_place(context, noun, name)
        found = context.admin.get(place)
        context.show(found, lambda: _describe(noun, found, _listed_facts(context, place) if noun is TOOLS else ()))

    return click.command("show", help=f"Show one {noun.words} with its definition and its handler.")(run)


def _create_command(noun: CommandNoun) -> click.Command:
    @click.argument("file")
    @with_tenant
    def run(context: AdminContext, file: str) -> None:
        path = context.tenant_path(noun.segment)
        declarations = _valid(context, noun, read_declarations(file))
        sent = send_all(declarations, lambda body: context.admin.send("POST", path, body))
        context.show(sent, lambda: _print(noun, "created", sent))

    about = f"Create every {noun.words} that FILE declares (JSON or YAML; - reads stdin)."
    return click.command("create", help=_with_example(noun, about, "create"))(run)


def _update_command(noun: CommandNoun) -> click.Command:
    @click.argument("file")
    @click.argument("name", required=False, metavar=f"[{noun.metavar}]")
    @with_tenant
    def run(context: AdminContext, file: str, name: str | None) -> None:
        declarations = read_declarations(file) if name is None else [only_one(read_declarations(file))]
        declarations = _valid(context, noun, declarations)
        sent = send_all(declarations, lambda body: _put(context, noun, body, name))
        context.show(sent, lambda: _print(noun, "updated", sent))

    about = f"Replace every {noun.words} that FILE declares; {noun.metavar} is the stored name if FILE changes it."
    return click.command("update", help=_with_example(noun, about, "update"))(run)


def _set_command(noun: CommandNoun) -> click.Command:
    @click.argument("file")
    @with_tenant
    def run(context: AdminContext, file: str) -> None:
        declarations = _valid(context, noun, read_declarations(file))
        sent = send_all(declarations, lambda body: _create_or_replace(context, noun, body))
        context.show(sent, lambda: _print(noun, "set", sent))

    about = f"Create or replace every {noun.words} that FILE declares (JSON or YAML; - reads stdin)."
    verb = "put" if noun is TOOLS else "set"  # `tool set` sets overrides
    return click.command(verb, help=_with_example(noun, about, verb))(run)


def _with_example(noun: CommandNoun, about: str, verb: str) -> str:
    """Return the help of a command that reads a file: a sentence, and an example."""
    return f"{about}\n\n\b\nExample:\n  gateway {noun.group} {verb} {noun.segment}.yaml"


def _valid(context: AdminContext, noun: CommandNoun, declarations: Sequence[Declaration]) -> Sequence[Declaration]:
    """Return the declarations; if there are several, nothing is sent unless the gateway finds all of them valid."""
    if len(declarations) > 1:
        path = context.tenant_path(noun.segment, "validate")
        for_each(declarations, lambda body: context.admin.send("POST", path, body), lambda _: None)
    return declarations


def _create_or_replace(context: AdminContext, noun: CommandNoun, body: JsonObject) -> JsonObject:
    named = _name_in(noun, body)
    path = context.tenant_path(noun.segment)
    if noun.member != "name":
        return context.admin.send("PUT", f"{path}?uri={quote(named, safe='')}", body)
    if _is_plain(named):
        return context.admin.send("PUT", context.tenant_path(noun.segment, named), body)
    try:
        return _put(context, noun, body, named)  # a path cannot contain this name
    except Failure as failure:
        if failure.exit_code is not ExitCode.NOT_FOUND:
            raise
    return context.admin.send("POST", path, body)


def _name_in(noun: CommandNoun, body: JsonObject) -> str:
    named = text_in(body, "definition", noun.member)
    if not named:
        raise Failure(f"/definition/{noun.member}: required", ExitCode.USAGE)
    return named


def _is_plain(name: str) -> bool:
    """True if a path can contain the name unquoted."""
    return _UNRESERVED.issuperset(name) and bool(name.strip("."))


def _put(context: AdminContext, noun: CommandNoun, body: JsonObject, name: str | None) -> JsonObject:
    place = find_place(context, noun, name or _name_in(noun, body))
    _, tag = context.admin.get_with_tag(place)
    return context.admin.send("PUT", place, body, if_match=tag)


def _switch_command(noun: CommandNoun, verb: str, *, is_enabled: bool) -> click.Command:
    @click.argument("name", metavar=noun.metavar)
    @with_tenant
    def run(context: AdminContext, name: str) -> None:
        saved = context.admin.send("PATCH", find_place(context, noun, name), {"enabled": is_enabled})
        context.show(saved, lambda: f"{verb}d {name}")

    meaning = "Enable" if is_enabled else "Disable"
    return click.command(verb, help=f"{meaning} a {noun.words}; its declaration stays.")(run)


def _delete_command(noun: CommandNoun) -> click.Command:
    @click.argument("name", metavar=noun.metavar)
    @yes_option
    @with_tenant
    def run(context: AdminContext, name: str, yes: bool) -> None:
        confirm(f"Delete {noun.words} {name}?", is_sure=yes)
        context.admin.send("DELETE", find_place(context, noun, name))
        context.show({"deleted": name}, lambda: f"deleted {name}")

    return click.command("delete", help=f"Delete a {noun.words} that the tenant defined.")(run)


def _validate_command(noun: CommandNoun) -> click.Command:
    @click.argument("file")
    @with_tenant
    def run(context: AdminContext, file: str) -> None:
        path = context.tenant_path(noun.segment, "validate")
        validated = send_all(read_declarations(file), lambda body: context.admin.send("POST", path, body))
        titles = ("name", "safety", "because")
        rows = [[text_at(one, name) for name in ("name", "safety", "safety_reasons")] for one in validated]
        context.show(validated, lambda: render_table(titles, rows))

    return click.command("validate", help=f"Validate every {noun.words} that FILE declares; nothing is stored.")(run)


def _print(noun: CommandNoun, verb: str, sent: Sequence[JsonObject]) -> str:
    return "\n".join(f"{verb} {text_at(one, noun.shown)} ({_level(one)})" for one in sent)


def _origin(item: JsonObject) -> str:
    """Return the origin of an item, with the name of its source if it has one."""
    return ":".join(part for part in (text_at(item, "origin"), text_at(item, "source")) if part)


def _level(item: JsonObject) -> str:
    """Return the safety level of an item, with a note if it is disabled."""
    return text_at(item, "safety") + ("" if pick(item, "enabled") is not False else ", disabled")


def _summary(item: JsonObject) -> str:
    return shorten(text_at(item, "definition", "description"), _DESCRIPTION_WIDTH)


def _listed_facts(context: AdminContext, place: str) -> Sequence[tuple[str, str]]:
    """The listed name of a tool, and the clients that have difficulties with it."""
    listed = context.admin.get(f"{place}/listed")
    limits = [
        (text_at(limit, "clients"), f"{text_at(limit, 'effect')}; {text_at(limit, 'remedy')}")
        for limit in to_objects(listed.get("limits"))
    ]
    return [("listed as", text_at(listed, "name")), *limits]


def _describe(noun: CommandNoun, found: JsonObject, facts: Sequence[tuple[str, str]] = ()) -> str:
    pairs = [
        (noun.shown.replace("_", " "), text_at(found, noun.shown)),
        ("id", text_at(found, "id")),
        ("from", _origin(found)),
        ("operation", text_at(found, "operation")),
        ("enabled", text_at(found, "enabled")),
        ("safety", text_at(found, "safety")),
        ("because", text_at(found, "safety_reasons")),
        ("hides", "a registration in code" if pick(found, "hides_code") is True else ""),
        *facts,
    ]
    parts = [render_pairs(pairs), _indent(found.get("definition"))]
    if found.get("handler") is not None:
        parts.append(f"handler:\n{_indent(found['handler'])}")
    return "\n\n".join(parts)


def _indent(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
