"""The commands of one kind, derived from its declaration."""

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from gateway.cli.bulk import ObjectAction, Objects, act_on_each, several_objects
from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_admin, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import Declaration, for_each, read_declarations
from gateway.cli.input.declared_items import send_all
from gateway.cli.input.json_fields import JsonObject, pick, text_at
from gateway.cli.input.list_options import ListArguments, list_options_of
from gateway.cli.input.options import yes_option
from gateway.cli.item_commands import add_delete
from gateway.cli.kinds.options import (
    Command,
    OptionOf,
    SpecialOptions,
    add_options,
    defaults_of,
    fields_of,
    options_of,
    replace_option,
    write_options,
)
from gateway.cli.kinds.output import render_list, render_object
from gateway.cli.kinds.places import RENAME, naming_of, place_of, send_declared
from gateway.cli.object_names import ObjectArgument
from gateway.cli.output.printing import Shown, join
from gateway.cli.output.tables import render_table
from gateway.kinds.kind import SHOWN_ONLY, Kind
from gateway.kinds.members import keeps, settable

_OF_TENANT = "a tenant's "
_STANDARD_INPUT = "-"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FILE_ENDINGS = (".json", ".yaml", ".yml")
_METHODS: Mapping[str, str] = {"create": "POST", "set": "PUT", "update": "PATCH"}
_RESULTS: Mapping[str, str] = {"create": "created", "set": "set", "update": "updated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCommands:
    """The group of one kind's commands; other commands of the kind are added to it by hand."""

    kind: Kind[Any]
    name: str = ""
    """The name of the group, if it is not that of the kind."""
    loss: str = ""
    """The rest of the question before a deletion: other things that are deleted, such as ` with its deliveries`."""
    path: str = ""
    """The words before the verb in examples, if they are not the name of the group."""
    special: SpecialOptions | None = None
    validates: bool = False
    """True if the gateway validates objects without storing them; of several objects, an invalid one stops all."""
    facts: Callable[[AdminContext, str], Sequence[tuple[str, str]]] | None = None
    """Reads further lines of `show`, given the path of the object."""
    verbs: Collection[str] = ("list", "show", "create", "set", "update", "rotate", "delete")
    """The derived commands; others are added to the group by hand."""
    about: str = ""
    """The help of the group, if it has other commands."""
    remark: Callable[[AdminContext, JsonObject], str] | None = None
    """Returns the line that follows a created object."""
    complete: Callable[[AdminContext, str, JsonObject], JsonObject] | None = None
    """Completes the fields that options describe, given the verb."""

    def group(self) -> click.Group:
        """Build the group."""
        kind = self.kind
        name = self.name or kind.name.replace("_", "-")
        plural = kind.plural_words
        owner = "" if kind.is_operators else _OF_TENANT
        group = Commands(name, help=self.about or f"List, show, create, set, change and delete {owner}{plural}.")
        group.path = self._path
        self.add_list(group)
        if "show" in self.verbs:
            self._add_show(group, f"Show one {kind.words}.")
        for verb, about in (
            ("create", f"Create {kind.one}: {kind.about}."),
            ("set", f"Replace {kind.one}{', or create it' * kind.set_creates}; what is not given has its default."),
            ("update", f"Change what is given of {kind.one}; everything else stays."),
        ):
            if verb in self.verbs and (verb != "update" or options_of(kind, is_new=False)):
                self._add_writing(group, verb, about)
        if kind.generates and "rotate" in self.verbs:
            self._add_rotation(group)
        if self.validates:
            self._add_validate(group)
        about = f"Delete {kind.one}{self.loss}."
        add_delete(group, kind.plural, about, loss=self.loss, naming=naming_of(kind))
        return group

    @property
    def _run(self) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """The decorator of commands; those of the operator's objects select no tenant."""
        return with_admin if self.kind.is_operators else with_tenant

    def add_list(self, group: click.Group) -> None:
        """Add `list` to a group, also to one whose other commands are written by hand."""
        kind = self.kind
        about = f"List {'' if kind.is_operators else _OF_TENANT}{kind.plural_words}." + _order_of(kind)

        @group.command("list", help=about)
        @list_options_of(kind)
        @self._run
        def list_items(context: AdminContext, wanted: ListArguments) -> None:
            items = list(context.admin.pages(place_of(context, kind), limit=wanted.limit, query=wanted.query))
            if kind.in_order and "sort" not in wanted.query:
                items.sort(key=_place_in(kind.in_order))
            context.show(items, lambda: render_list(kind, items))

    def _add_show(self, group: click.Group, about: str) -> None:
        kind, naming = self.kind, naming_of(self.kind)

        def read(context: AdminContext, item: str) -> JsonObject:
            path = place_of(context, kind, item)
            found = context.admin.get(path)
            if self.facts is not None and not context.as_json:
                facts[id(found)] = self.facts(context, path)
            return found

        def describe(context: AdminContext, found: JsonObject) -> Shown:
            return render_object(kind, found, base=context.admin.url, facts=facts.get(id(found), ()))

        facts: dict[int, Sequence[tuple[str, str]]] = {}

        @group.command("show", help=about)
        @several_objects(naming, has_all=False)
        @self._run
        def show_item(context: AdminContext, objects: Objects) -> None:
            action = ObjectAction(
                send=read,
                describe=lambda _, found: describe(context, found),
                verb="show",
                separator="\n\n",
                is_reading=True,
            )
            act_on_each(context, objects, action, noun=kind.words, is_sure=True)

    def _add_validate(self, group: click.Group) -> None:
        kind = self.kind

        @group.command("validate", help=f"Validate every {kind.words} that FILE declares; nothing is stored.")
        @click.argument("file")
        @with_tenant
        def validate_items(context: AdminContext, file: str) -> None:
            path = context.tenant_path(kind.plural, "validate")
            validated = send_all(read_declarations(file), lambda body: context.admin.send("POST", path, body))
            titles = ("name", "safety", "because")
            rows = [[text_at(one, name) for name in ("name", "safety", "safety_reasons")] for one in validated]
            context.show(validated, lambda: render_table(titles, rows))

    def _add_rotation(self, group: click.Group) -> None:
        kind = self.kind
        about = f"Rotate the secret of {kind.one} and print the new one once. {kind.rotation}"

        @group.command("rotate", help=f"{about}\n\n\b\nExample:\n  gateway {self._path} rotate {kind.example_address}")
        @several_objects(naming_of(kind))
        @yes_option
        @self._run
        def rotate_item(context: AdminContext, objects: Objects, yes: bool) -> None:
            action = ObjectAction(
                send=lambda context, item: context.admin.send("POST", place_of(context, kind, item, "rotate")),
                describe=lambda _, rotated: self.written_line(context, "rotated", rotated),
                verb="rotate",
                separator="\n\n",
            )
            act_on_each(context, objects, action, noun=kind.words, is_sure=yes)

    def written_line(self, context: AdminContext, result: str, one: JsonObject) -> Shown:
        """The line about a written object; one with a generated secret is shown whole, because that is shown once."""
        by_key = self.kind.key_in or self.kind.is_operators
        line = f"{result} {text_at(one, self.kind.keyed if by_key else 'name') or text_at(one, 'id')}"
        if result == _RESULTS["create"] and self.remark is not None:
            line = f"{line}\n{self.remark(context, one)}"
        secret = text_at(one, self.kind.generated_as)
        shown = render_object(self.kind, one, base=context.admin.url)
        return join([line, shown, f"{self.kind.generated_as}  {secret}"], "\n\n") if secret else line

    @property
    def _path(self) -> str:
        """The words of the group in a command line."""
        return self.path or self.name or self.kind.name.replace("_", "-")

    def _add_writing(self, group: click.Group, verb: str, about: str) -> None:
        kind = self.kind
        options = [
            one
            for one in options_of(kind, is_new=verb != "update")
            if verb == "create" or not (kind.is_operators and one.member.name == kind.keyed)
        ]
        arguments = [one for one in options if verb == "create" and one.member.option.is_argument]
        names = [one.member.name for one in arguments]
        identifier = _identifier(kind, verb)

        @self._run
        def write(context: AdminContext, /, target: str | None, *, replace: bool = False, **given: Any) -> None:
            named, values = given.pop("named", None), given.pop("values", ())
            if not identifier and target is not None and not is_file(target):
                target, values = None, (target, *values)
            fields = fields_of(options, {**given, **_as_options(arguments, values)})
            fields |= self._special_fields(verb, given)
            if verb == "create" and not is_file(target):
                fields = {**defaults_of(options), **fields}
            if verb == "update" and not fields and not is_file(target):
                raise Failure("nothing to change: give an option, or FILE", ExitCode.USAGE)
            declarations = _declared(target, named, fields, identifier=identifier)
            declarations = declarations if is_file(target) else self._completed(context, verb, declarations)
            self._write(context, verb, declarations, replaces=replace, is_one=not is_file(target))

        command = add_options(write, [one for one in options if one not in arguments])
        if self.special is not None:
            command = self.special.add(command)
        for one in reversed(arguments):
            command = add_options(command, [one])
        command = _add_verb_option(command, kind, verb)
        if identifier == "name":
            command = click.option("--name", "named", metavar="NAME", help="The name, if it is not the argument.")(
                command
            )
        shown = kind.query_key if identifier == kind.keyed else identifier
        first, *others = [shown, *names] if identifier else names or [""]
        if others:
            command = click.argument("values", nargs=-1, metavar=" ".join(f"[{one.upper()}]" for one in others))(
                command
            )
        metavar = f"[{first.upper()}|FILE]" if first else "[FILE]"
        completed: dict[str, Any] = {} if verb == "create" else {"cls": ObjectArgument, "naming": naming_of(kind)}
        command = click.argument("target", required=False, metavar=metavar, **completed)(command)
        text = f"{about}\n\nFILE declares objects as JSON or YAML; - reads stdin.\n\n{self._example(verb)}"
        group.command(verb, help=text)(command)

    def _special_fields(self, verb: str, given: Mapping[str, Any]) -> JsonObject:
        """The fields that special options describe, and the new name."""
        changed = {one.name for one in settable(self.kind.of) if one.setter is None or verb != "update"} | {RENAME}
        special = {} if self.special is None else self.special.fields(given)
        renamed = {} if given.get(RENAME) is None else {RENAME: given[RENAME]}
        return {name: value for name, value in special.items() if name in changed} | renamed

    def _completed(
        self, context: AdminContext, verb: str, declarations: Sequence[Declaration]
    ) -> Sequence[Declaration]:
        """The one object that options describe, with the fields that follow from others."""
        if self.complete is None:
            return declarations
        return [Declaration(place=one.place, content=self.complete(context, verb, one.content)) for one in declarations]

    def _example(self, verb: str) -> str:
        """The paragraph of the help with an example."""
        kind = self.kind
        example = dict({"create": kind.example, "set": kind.set_example, "update": kind.changed_example}[verb])
        named = [kind.example_address]
        if kind.key_in and verb != "update":
            return f"\b\nExample:\n  gateway {self._path} {verb} {kind.plural}.yaml"
        if verb == "create" and not kind.is_named:
            named = [str(example.pop(one.name)) for one in settable(kind.of) if one.option.is_argument]
        if kind.is_operators:
            example.pop(kind.keyed, None)
        special = () if self.special is None else self.special.write(example)
        written = [f"gateway {self._path} {verb} {shlex.join(named)}", *special, *write_options(kind, example)]
        return "\b\nExample:\n  " + " \\\n    ".join(written)

    def _write(
        self, context: AdminContext, verb: str, declarations: Sequence[Declaration], *, replaces: bool, is_one: bool
    ) -> None:
        kind = self.kind

        def send(body: JsonObject) -> JsonObject:
            if verb == "create":
                return context.admin.send("POST", place_of(context, kind), body)
            return send_declared(context, kind, _METHODS[verb], body, replaces=replaces)

        if self.validates and verb != "update" and len(declarations) > 1:
            path = context.tenant_path(kind.plural, "validate")
            ignored = SHOWN_ONLY | {"id", kind.keyed} if verb == "set" else frozenset[str]()

            def validate(body: JsonObject) -> JsonObject:
                return context.admin.send("POST", path, {name: body[name] for name in body.keys() - ignored})

            for_each(declarations, validate, lambda _: None)
        done = send_all(declarations, send)
        lines = join(self.written_line(context, _RESULTS[verb], one) for one in done)
        context.show(done[0] if is_one else done, lambda: lines)


def _add_verb_option(command: Command, kind: Kind[Any], verb: str) -> Command:
    if verb == "set" and keeps(kind.of):
        return replace_option(command)
    if verb == "update" and kind.is_renamed:
        return click.option(f"--{RENAME}", metavar="NEW", help="Another name.")(command)
    return command


def _identifier(kind: Kind[Any], verb: str) -> str:
    """The member that names the object of a command; empty if options alone describe it."""
    if verb == "create":
        return "name" if kind.is_named and not kind.key_in else ""
    return kind.keyed if kind.key_in or kind.is_operators else kind.address


def _as_options(arguments: Sequence[OptionOf], values: Sequence[str]) -> Mapping[str, str]:
    if len(values) > len(arguments):
        raise Failure(f"unexpected argument {values[len(arguments)]!r}", ExitCode.USAGE)
    return {one.parameter: value for one, value in zip(arguments, values, strict=False)}


def is_file(target: str | None) -> bool:
    """True if the argument is a file instead of a name or URI: no name has a slash, and `--name` takes any."""
    if target is None or _URI.match(target):
        return False
    return target == _STANDARD_INPUT or target.endswith(_FILE_ENDINGS) or "/" in target


def _order_of(kind: Kind[Any]) -> str:
    return f" Without --sort, by {' and '.join(kind.in_order)}, the order in which they apply." if kind.in_order else ""


def _place_in(members: Sequence[str]) -> Callable[[JsonObject], tuple[Any, ...]]:
    return lambda item: tuple(pick(item, name) for name in members)


def _declared(target: str | None, named: str | None, fields: JsonObject, *, identifier: str) -> Sequence[Declaration]:
    """The objects of FILE, or the one that name or id and options describe."""
    if target is not None and is_file(target):
        if named is not None or fields:
            raise Failure("give FILE, or a name with options, not both", ExitCode.USAGE)
        return read_declarations(target)
    if not identifier:
        if not fields:
            raise Failure("give arguments or options, or FILE; --help has an example", ExitCode.USAGE)
        return [Declaration(place="the options", content=fields)]
    if target is not None and named is not None:
        raise Failure("give the name once: as an argument or as --name", ExitCode.USAGE)
    name = named or target
    if not name:
        raise Failure(f"give a {identifier} with options, or FILE; --help has an example", ExitCode.USAGE)
    return [Declaration(place="the options", content={identifier: name, **fields})]
