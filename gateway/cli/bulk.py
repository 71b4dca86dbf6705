"""Several objects in one command: names or `--all` with filters, one question, and a report for each object."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

import click

from gateway.cli.client.admin_context import AdminContext, confirm
from gateway.cli.client.rate_limit import send_within
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.limits import MAX_WAIT_S
from gateway.cli.input.list_options import filter_options_of, query_of
from gateway.cli.limits import MAX_NAMED
from gateway.cli.object_names import Naming, ObjectArgument, suggest
from gateway.cli.output.printing import Shown, echo, join
from gateway.cli.output.tables import clean, count

_Command = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """One object of a command: the name for people, and the id if a list has named it."""

    name: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The objects that a command was given."""

    naming: Naming
    names: Sequence[str]
    is_all: bool
    query: Mapping[str, str]

    @property
    def is_one(self) -> bool:
        """True if one object was named: its output is the object itself, and its failure that of the command."""
        return len(self.names) == 1 and not self.is_all

    def read(self, context: AdminContext) -> Sequence[NamedObject]:
        """Return the objects; `--all` reads the list.

        Raises:
            Failure: no object is given, names are combined with `--all`, or a filter is given without it.
        """
        if self.is_all == bool(self.names):
            raise Failure(f"give {self.naming.metavar} or --all, and not both", ExitCode.USAGE)
        if self.query and not self.is_all:
            raise Failure("filters select from --all; a name needs none", ExitCode.USAGE)
        if not self.is_all:
            return [NamedObject(name=name) for name in dict.fromkeys(self.names)]
        items = context.admin.pages(self.naming.path(context), query=self.query)
        return [self._target_of(item) for item in items]

    def _target_of(self, item: JsonObject) -> NamedObject:
        """An object of a list, whose path has its id; one without an id is addressed by its name."""
        [name, *_] = [*self.naming.labels(item), text_at(item, "id")]
        address = text_at(item, "id") or None
        shown = clean(name)
        return NamedObject(name=shown if self.naming.is_unique else f"{address} ({shown})", id=address)


def several_objects(naming: Naming, *, has_all: bool = True) -> Callable[[_Command], _Command]:
    """Add an argument for one or more names, and `--all` with the filters of the declaration, if there is one.

    The command receives them as `objects`.
    """

    of = naming.of if has_all and not naming.is_operators else None  # all tenants are never one operation

    def decorate(body: _Command) -> _Command:
        def run(*, names: tuple[str, ...], is_all: bool = False, **given: Any) -> Any:
            query = query_of({name: given.pop(name, None) for name in filters})
            objects = Objects(naming=naming, names=names, is_all=is_all, query=query)
            return body(objects=objects, **given)

        command: _Command = update_wrapper(run, body)
        filters: Sequence[str] = ()
        if of is not None:
            filters, add_filters = filter_options_of(of)
            command = add_filters(command)
            every = f"All {of.plural_words}, or those that the filters select."
            command = click.option("--all", "is_all", is_flag=True, help=every)(command)
        metavar = f"{naming.metavar}..." if of is None else f"[{naming.metavar}]..."
        return click.argument(
            "names", nargs=-1, cls=ObjectArgument, naming=naming, metavar=metavar, required=of is None
        )(command)

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAction:
    """An action for each object of a command."""

    send: Callable[[AdminContext, str], JsonObject]
    """Sends the request for the segment of an object, and returns the response."""
    describe: Callable[[str, JsonObject], Shown]
    """The text about one object, given its name and the response."""
    verb: str
    """The verb of the question, such as `delete`."""
    loss: str = ""
    """The rest of the question: the things that end with an object."""
    is_destructive: bool = False
    """True if named objects need a confirmation, too; `--all` always needs one."""
    names_results: str = ""
    """The member of the JSON output with the name, for an action whose response has no content: `deleted`."""
    separator: str = "\n"
    is_reading: bool = False


def act_on_each(context: AdminContext, objects: Objects, action: ObjectAction, *, noun: str, is_sure: bool) -> None:
    """Act on each object, and report each; the exit code is 9 if only some failed."""
    targets = objects.read(context)
    _ask(objects, targets, action, noun, is_sure=is_sure)
    if objects.is_one:
        [target] = targets
        done = _send(context, objects.naming, action, target, is_waiting=False)
        context.show(_as_json(action, target, done), lambda: action.describe(target.name, done))
        return
    if not targets:
        context.show([], lambda: f"no {noun} is selected")
        return
    _report(context, targets, _send_all(context, objects, action, targets), action)


def _ask(objects: Objects, targets: Sequence[NamedObject], action: ObjectAction, noun: str, *, is_sure: bool) -> None:
    if not targets or action.is_reading or not (action.is_destructive or objects.is_all):
        return
    verb = action.verb.capitalize()
    if objects.is_one:
        confirm(f"{verb} {noun} {targets[0].name}{action.loss}?", is_sure=is_sure)
        return
    named = ", ".join(target.name for target in targets[:MAX_NAMED])
    more = ", …" if len(targets) > MAX_NAMED else ""
    confirm(
        f"{verb} {count(len(targets), noun, objects.naming.plural_words)}{action.loss}: {named}{more}?", is_sure=is_sure
    )


def _send(
    context: AdminContext, naming: Naming, action: ObjectAction, target: NamedObject, *, is_waiting: bool = True
) -> JsonObject:
    def send() -> JsonObject:
        return action.send(context, target.id or naming.find(context, target.name))

    try:
        return send_within(MAX_WAIT_S, send, lambda text: echo(text, err=True)) if is_waiting else send()
    except Failure as failure:
        if failure.exit_code is ExitCode.NOT_FOUND and not failure.is_suggested and target.id is None:
            near = suggest(context, naming, target.name)
            failure.message += near
            failure.is_suggested = bool(near)
        raise


def _send_all(
    context: AdminContext, objects: Objects, action: ObjectAction, targets: Sequence[NamedObject]
) -> Sequence[JsonObject | Failure]:
    """Return the response or the failure of each object; a gateway that is not reached ends the sequence."""
    results: list[JsonObject | Failure] = []
    for target in targets:
        try:
            results.append(_send(context, objects.naming, action, target))
        except Failure as failure:
            results.append(failure)
            if failure.exit_code is ExitCode.UNREACHABLE:
                break
    untried = Failure("not tried: the gateway is not reached", ExitCode.UNREACHABLE)
    return [*results, *[untried] * (len(targets) - len(results))]


def _as_json(action: ObjectAction, target: NamedObject, result: JsonObject) -> JsonObject:
    return {action.names_results: target.name} if action.names_results else result


def _report(
    context: AdminContext, targets: Sequence[NamedObject], results: Sequence[JsonObject | Failure], action: ObjectAction
) -> None:
    pairs = list(zip(targets, results, strict=True))
    failures = [(target, result) for target, result in pairs if isinstance(result, Failure)]
    shown = [
        {"name": target.name, "error": {"message": result.message, "exit_code": int(result.exit_code)}}
        if isinstance(result, Failure)
        else _as_json(action, target, result)
        for target, result in pairs
    ]
    done = [(target.name, result) for target, result in pairs if not isinstance(result, Failure)]
    context.show(shown, lambda: join((action.describe(name, result) for name, result in done), action.separator))
    for target, failure in failures:
        echo(f"gateway: {target.name}: {failure.message}", err=True)
    if failures:
        echo(f"gateway: {len(failures)} of {len(targets)} failed", err=True)
        code = ExitCode.SOME_FAILED if done else failures[0][1].exit_code
        click.get_current_context().exit(int(code))
