"""`gateway access`: rules about the primitives that keys and people may list and use, and roles of people."""

from collections.abc import Iterator
from copy import copy
from typing import Unpack

import click

from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.client_options import ClientOptions, client_options, describe_client
from gateway.cli.input.declarations import only_one, read_declarations
from gateway.cli.input.json_fields import JsonObject, as_text, text_at, to_list, to_object, to_objects
from gateway.cli.kinds.single_commands import SingletonCommands
from gateway.cli.output.printing import Shown, echo
from gateway.cli.output.reports import join_parts
from gateway.cli.output.rule_matches import describe_matches, list_warnings
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.primitives import Family
from gateway.kinds.singletons import ACCESS

_MEMBERS = {"default", "rules", "roles"}


def _warn(context: AdminContext, written: JsonObject) -> None:
    """Print warnings about the stored rules."""
    del written
    for warning in list_warnings(context.admin.send("POST", context.tenant_path("access", "report"), {})):
        echo(f"warning: {warning}", err=True)


def _describe(found: JsonObject) -> Shown:
    rules = [(f"rule {number}", _describe_rule(rule)) for number, rule in enumerate(to_objects(found.get("rules")), 1)]
    roles = [(f"role {number}", _describe_role(rule)) for number, rule in enumerate(to_objects(found.get("roles")), 1)]
    return render_pairs([*rules, ("without a rule", text_at(found, "default")), *roles])


def _describe_role(rule: JsonObject) -> str:
    reason = text_at(rule, "reason")
    return f"{text_at(rule, 'role')}: {_describe_who(rule)}" + (f" ({reason})" if reason else "")


def _describe_who(rule: JsonObject) -> str:
    who, unless = (", ".join(map(as_text, to_list(rule.get(name)))) for name in ("who", "unless"))
    return who + (f", unless {unless}" if unless else "")


def _describe_rule(rule: JsonObject) -> str:
    what = to_object(rule.get("what"))
    facts = [f"{name} {', '.join(map(as_text, to_list(value)))}" for name, value in what.items() if value]
    reason = text_at(rule, "reason")
    return f"{text_at(rule, 'effect')} {_describe_who(rule)}: {' and '.join(facts) or 'everything'}" + (
        f" ({reason})" if reason else ""
    )


access = SingletonCommands(
    kind=ACCESS,
    about="Show, set, change and check the access rules of a tenant, and the roles of its people.",
    describe=_describe,
    warn=_warn,
).group()
_list = copy(access.commands["show"])
_list.hidden = True
access.add_command(_list, "list")  # the spelling of earlier releases


@access.command("report")
@click.argument("file", required=False)
@with_tenant
def report_rules(context: AdminContext, file: str | None) -> None:
    """Show which primitives each rule of FILE (JSON or YAML; - reads stdin), or each stored rule, is about."""
    body = {} if file is None else _read(file)
    found = context.admin.send("POST", context.tenant_path("access", "report"), body)
    context.show(found, lambda: describe_matches(found))


@access.command("check")
@client_options
@click.option("--family", type=click.Choice([one.value for one in Family]), help="Only primitives of this family.")
@click.option("--denied", is_flag=True, help="Only primitives that the client may not use.")
@with_tenant
def check_access(context: AdminContext, family: str | None, denied: bool, **client: Unpack[ClientOptions]) -> None:
    """Show what a key or a person may use, the rules that decide it, and the roles of a person.

    \b
    Example:
      gateway access check --as-subject corp:ada --as-group corp:engineers
    """
    body: JsonObject = {"as": describe_client(context, client), **({} if family is None else {"family": family})}
    pages = list(_pages(context, body))
    found = [one for page in pages for one in to_objects(page.get("items"))]
    items = [one for one in found if not (denied and one.get("allowed") is True)]
    titles = ("access", "family", "source", "name", "reason")
    roles = ", ".join(map(as_text, to_list(pages[0].get("roles"))))

    def describe() -> Shown:
        table = render_table(titles, [_row(one) for one in items])
        return join_parts(table, f"roles: {roles}" if roles else "")

    context.show(items, describe)


def _pages(context: AdminContext, body: JsonObject) -> Iterator[JsonObject]:
    cursor = ""
    while True:
        asked: JsonObject = {**body, "limit": 200, **({"cursor": cursor} if cursor else {})}
        page = context.admin.send("POST", context.tenant_path("access", "check"), asked)
        yield page
        cursor = text_at(page, "next_cursor")
        if not cursor:
            return


def _row(one: JsonObject) -> tuple[str, ...]:
    verdict = "allowed" if one.get("allowed") is True else "denied"
    return (verdict, *(text_at(one, name) for name in ("family", "source", "name", "reason")))


def _read(file: str) -> JsonObject:
    content = only_one(read_declarations(file)).content
    if not content.keys() <= _MEMBERS or "rules" not in content:
        raise Failure(f"{file}: needs the member `rules`, and may have `default` and `roles`", ExitCode.USAGE)
    return content
