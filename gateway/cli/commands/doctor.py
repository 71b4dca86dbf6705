"""`gateway doctor`: examines the installation and names a remedy for each fault."""

from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.locations import DEFAULT_FOLDER
from gateway.cli.contexts.chosen import admin_key
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.input.options import (
    chosen,
    chosen_url,
    data_dir_option,
    json_option,
    key_option,
    url_option,
    wants_json,
)
from gateway.cli.output.printing import Shown, join, show
from gateway.cli.output.tables import render_table
from gateway.domain.findings import Verdict

_EXPLICIT_SOURCES = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}


@click.command("doctor")
@url_option
@key_option
@data_dir_option
@json_option
def examine() -> None:
    """Examine database, Redis, keys, egress, clock, disk and versions, and print a remedy for each fault.

    With --url, the gateway at that URL examines itself; this needs the operator's key. Without it, the settings of this
    environment are examined here. If a running gateway uses the embedded servers, that gateway examines itself
    instead.
    """
    if _is_url_given():
        findings, place = _request_findings(chosen_url()), chosen_url()
    else:
        findings, place = _examine_here()
    _print(findings, place)
    if any(text_at(finding, "status") == Verdict.FAILED for finding in findings):
        click.get_current_context().exit(ExitCode.FAILED)


def _is_url_given() -> bool:
    """True if an option, before or after the command's name, or the environment sets the URL."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.get_parameter_source("url") in _EXPLICIT_SOURCES:
            return True
        context = context.parent
    return False


def _request_findings(url: str) -> list[JsonObject]:
    """Request the findings of a running gateway about itself."""
    key = admin_key(url)
    with AdminApi(url, key) as admin:
        return to_objects(admin.get(path_of("doctor")).get("findings"))


def _query_holder(url: str, folder: Path) -> list[JsonObject]:
    """Request the findings of the gateway that uses the embedded servers, which may listen at another URL."""
    try:
        return _request_findings(url)
    except Failure as failure:
        if failure.exit_code is not ExitCode.UNREACHABLE:
            raise
        message = f"a gateway uses {folder}, but does not respond at {url}; give its --url"
        raise Failure(message, ExitCode.UNREACHABLE) from None


def _examine_here() -> tuple[list[JsonObject], str]:
    from gateway.cli.client import local_stores  # noqa: PLC0415  # 1,400 modules, not needed by `--help`

    return local_stores.examine(Path(chosen("data_dir") or DEFAULT_FOLDER), _query_holder)


def _print(findings: Sequence[JsonObject], place: str) -> None:
    show({"examined": place, "findings": findings}, lambda: _render(findings, place), as_json=wants_json())


def _render(findings: Sequence[JsonObject], place: str) -> Shown:
    rows = [(text_at(one, "status"), text_at(one, "check"), text_at(one, "detail")) for one in findings]
    remedies_by_check = [f"{text_at(one, 'check')}: {text_at(one, 'mend')}" for one in findings if text_at(one, "mend")]
    return join(
        [
            f"examined {place}",
            "",
            render_table(("status", "check", "detail"), rows),
            *(["", "to fix:", *(f"  {remedies}" for remedies in remedies_by_check)] if remedies_by_check else []),
        ]
    )
