"""What every admin command stands at: an open admin API, and the form its answer is printed in."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from pathlib import Path
from typing import Concatenate, ParamSpec

import click

from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.locations import DEFAULT_FOLDER, find_admin_key
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.options import (
    chosen,
    chosen_url,
    folder_option,
    json_option,
    key_option,
    tenant_option,
    url_option,
    wants_json,
)
from gateway.cli.output.printing import show

P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminContext:
    """An open admin API, the tenant that is spoken of, and the form of the answer."""

    admin: AdminApi
    tenant: str | None
    as_json: bool

    def tenant_path(self, *parts: str) -> str:
        """A path below the tenant.

        Raises:
            Failure: no tenant was named.
        """
        if not self.tenant:
            raise Failure("no tenant: give --tenant or set GATEWAY_TENANT", ExitCode.USAGE)
        return path_of("tenants", self.tenant, *parts)

    def show(self, value: object, text: Callable[[], str]) -> None:
        """Print the value as JSON when that was asked for, else as text for a person."""
        show(value, text, as_json=self.as_json)


def with_admin(body: Callable[Concatenate[AdminContext, P], None]) -> Callable[P, None]:
    """Give a command the options of every admin command, and hand it an open desk."""

    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        url = chosen_url()
        key = find_admin_key(url, given=chosen("key"), folder=Path(chosen("data_dir") or DEFAULT_FOLDER))
        with AdminApi(url, key) as admin:
            body(AdminContext(admin=admin, tenant=chosen("tenant"), as_json=wants_json()), *args, **kwargs)

    command = update_wrapper(run, body)
    for option in (json_option, folder_option, key_option, url_option):
        command = option(command)
    return command


def with_tenant(body: Callable[Concatenate[AdminContext, P], None]) -> Callable[P, None]:
    """The same for a command that speaks of one tenant."""
    return tenant_option(with_admin(body))


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before something is gone for good; without a terminal only --yes will do.

    Raises:
        Failure: the answer was no, or there was nobody to ask.
    """
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise Failure("this cannot be undone: give --yes", ExitCode.USAGE)
    if not click.confirm(question, err=True):
        raise Failure("left as it is", ExitCode.FAILED)
