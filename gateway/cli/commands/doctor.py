"""`gateway doctor`: examines the installation and names a remedy for each fault."""

import fcntl
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import anyio
import click
from click.core import ParameterSource

from gateway.app.installation import describe_installation
from gateway.app.python.plugins import load_extras
from gateway.app.secrets import read_keys
from gateway.catalog.doctor.doctor import Doctor
from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.local_gateway import read_settings
from gateway.cli.client.locations import DEFAULT_FOLDER, find_admin_key, is_loopback
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure, failure_of
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
from gateway.cli.output.printing import show
from gateway.cli.output.tables import render_table
from gateway.domain.findings import Finding, Verdict
from gateway.embedded.servers import EmbeddedServers
from gateway.errors import BrokenSetting, GatewayError
from gateway.settings import Settings

_EXPLICIT_SOURCES = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
_NO_SERVER = Finding(
    check="database",
    status=Verdict.FAILED,
    detail="no server is configured, and the data folder is empty",
    mend="start `gateway serve` once, or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL",
)


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
    key = find_admin_key(url, given=chosen("key"), folder=Path(chosen("data_dir") or DEFAULT_FOLDER))
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
    settings = read_settings(data_dir=Path(chosen("data_dir") or DEFAULT_FOLDER))
    database, redis = settings.database_url, settings.redis_url
    try:
        if database is not None and redis is not None:
            urls = database.get_secret_value(), redis.get_secret_value()
            return _as_objects(anyio.run(_examine, settings, *urls)), "the configured servers"
        if database is not None or redis is not None:
            missing = "GATEWAY_REDIS_URL" if redis is None else "GATEWAY_DATABASE_URL"
            raise BrokenSetting(f"{missing}: set both server URLs, or neither")
        if _is_folder_in_use(settings.data_dir):
            url = f"http://{settings.host if is_loopback(f'http://{settings.host}') else '127.0.0.1'}:{settings.port}"
            return _query_holder(url, settings.data_dir), f"the gateway at {url}, with data in {settings.data_dir}"
        if not (settings.data_dir / "servers" / "postgres").is_dir():
            return _as_objects([_NO_SERVER]), str(settings.data_dir)
        return _as_objects(anyio.run(_examine_embedded, settings)), f"the servers below {settings.data_dir}"
    except GatewayError as error:
        raise failure_of(error) from None


async def _examine_embedded(settings: Settings) -> Sequence[Finding]:
    async with EmbeddedServers(settings.data_dir) as urls:
        return await _examine(settings, urls.database_url, urls.redis_url)


async def _examine(settings: Settings, database_url: str, redis_url: str) -> Sequence[Finding]:
    keys = read_keys(settings)
    facts = describe_installation(settings, keys, database_url, redis_url, code=load_extras(settings))
    return await Doctor(facts).examine()


def _is_folder_in_use(folder: Path) -> bool:
    """True if a running gateway uses the embedded servers of the data folder."""
    try:
        with (folder / "servers" / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _as_objects(findings: Sequence[Finding]) -> list[JsonObject]:
    return [{name: str(value) for name, value in asdict(finding).items()} for finding in findings]


def _print(findings: Sequence[JsonObject], place: str) -> None:
    show({"examined": place, "findings": findings}, lambda: _render(findings, place), as_json=wants_json())


def _render(findings: Sequence[JsonObject], place: str) -> str:
    rows = [(text_at(one, "status"), text_at(one, "check"), text_at(one, "detail")) for one in findings]
    remedies_by_check = [f"{text_at(one, 'check')}: {text_at(one, 'mend')}" for one in findings if text_at(one, "mend")]
    return "\n".join(
        [
            f"examined {place}",
            "",
            render_table(("status", "check", "detail"), rows),
            *(["", "to fix:", *(f"  {remedies}" for remedies in remedies_by_check)] if remedies_by_check else []),
        ]
    )
