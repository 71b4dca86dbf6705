"""The commands of one singleton, derived from its declaration: show, set and update."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import only_one, read_declarations
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.kinds.options import OptionOf, add_options, fields_of, options_of, replace_option, write_options
from gateway.cli.kinds.output import render_object
from gateway.cli.output.printing import Shown
from gateway.kinds.members import keeps
from gateway.kinds.singleton import Singleton

_METHODS = {"set": "PUT", "update": "PATCH"}


def _warn_nothing(_: AdminContext, __: JsonObject) -> None:
    """Warn of nothing: the singleton has no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonCommands:
    """The group of one singleton's commands; other commands are added to it by hand."""

    kind: Singleton[Any]
    name: str = ""
    """The name of the group, if it is not that of the singleton."""
    path: str = ""
    """The words before the verb in examples, if they are not the name of the group."""
    about: str = ""
    """The help of the group, if it has other commands."""
    describe: Callable[[JsonObject], Shown] | None = None
    """Describes the object for people, if its members one by one do not."""
    warn: Callable[[AdminContext, JsonObject], None] = _warn_nothing
    """Prints warnings about a written object."""

    def group(self) -> click.Group:
        """Build the group."""
        kind = self.kind
        group = Commands(self.name or kind.name, help=self.about or f"Show, set and change {kind.about}.")
        self._add_show(group)
        self._add_writing(group, "set", f"Replace {kind.about}; what is not given has its default.")
        self._add_writing(group, "update", f"Change what is given of {kind.about}; everything else stays.")
        return group

    def _add_show(self, group: click.Group) -> None:
        @group.command("show", help=f"Show {self.kind.about}.")
        @with_tenant
        def show_item(context: AdminContext) -> None:
            found = context.admin.get(context.tenant_path(*self.kind.path.split("/")))
            context.show(found, lambda: self._text(found))

    def _add_writing(self, group: click.Group, verb: str, about: str) -> None:
        options = options_of(self.kind, is_new=verb == "set")
        argument = next((one for one in options if verb == "set" and one.member.option.is_argument), None)

        @with_tenant
        def write(context: AdminContext, /, file: str | None, replace: bool = False, **given: Any) -> None:
            if argument is not None and file is not None and _is_value(file):
                given[argument.parameter], file = argument.value_of(file), None
            fields = self._fields(file, options, given)
            tenant_path = context.tenant_path(*self.kind.path.split("/"))
            path = f"{tenant_path}?replace=true" if replace else tenant_path
            done = context.admin.send(_METHODS[verb], path, fields)
            context.show(done, lambda: self._text(done))
            self.warn(context, fields)

        command = add_options(write, options)
        if verb == "set" and keeps(self.kind.of):
            command = replace_option(command)
        metavar = "[FILE]" if argument is None else f"[FILE|{argument.member.option.metavar}]"
        command = click.argument("file", required=False, metavar=metavar)(command)
        text = f"{about}\n\nFILE holds the members as JSON or YAML, as `show --json` prints them; - reads stdin."
        group.command(verb, help=f"{text}\n\n{self._example(verb)}")(command)

    def _fields(self, file: str | None, options: Sequence[OptionOf], given: dict[str, Any]) -> JsonObject:
        fields = fields_of(options, given)
        if file is None:
            if not fields:
                raise Failure("nothing to write: give options, or FILE; --help has an example", ExitCode.USAGE)
            return fields
        if fields:
            raise Failure("give FILE or options, not both", ExitCode.USAGE)
        return only_one(read_declarations(file)).content

    def _text(self, found: JsonObject) -> Shown:
        return self.describe(found) if self.describe else render_object(self.kind, found) or "nothing is set"

    def _example(self, verb: str) -> str:
        """The paragraph of the help with an example."""
        example = self.kind.changed_example if verb == "update" else self.kind.example
        written = list(write_options(self.kind, dict(example)))
        path = self.path or self.name or self.kind.name
        return "\b\nExample:\n  " + " \\\n    ".join([f"gateway {path} {verb}", *written])


def _is_value(text: str) -> bool:
    """True if the text is a value of the argument instead of a file."""
    return text != "-" and "/" not in text and not text.endswith((".json", ".yaml", ".yml"))
