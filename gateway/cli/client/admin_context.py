"""The context of every admin command: a client of the admin API, the tenant, and the output format."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Concatenate, ParamSpec

from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.contexts.chosen import admin_key
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.options import (
    chosen,
    chosen_url,
    context_option,
    data_dir_option,
    json_option,
    key_option,
    tenant_option,
    url_option,
    wants_json,
)
from gateway.cli.object_names import with_near_names
from gateway.cli.output.printing import Shown, ask_yes_no, show

P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminContext:
    """A client of the admin API, the selected tenant, and the output format."""

    admin: AdminApi
    tenant: str | None
    as_json: bool

    def tenant_path(self, *parts: str) -> str:
        """Build a path below the tenant.

        Raises:
            Failure: no tenant is selected.
        """
        if not self.tenant:
            raise Failure("no tenant: give --tenant or set GATEWAY_TENANT", ExitCode.USAGE)
        return path_of("tenants", self.tenant, *parts)

    def show(self, value: object, text: Callable[[], Shown]) -> None:
        """Print the value as JSON if requested, otherwise as text."""
        show(value, text, as_json=self.as_json)


def with_admin(body: Callable[Concatenate[AdminContext, P], None]) -> Callable[P, None]:
    """Add the options of every admin command to `body`, and pass it an open context."""

    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        url = chosen_url()
        key = admin_key(url)
        with AdminApi(url, key) as admin:
            context = AdminContext(admin=admin, tenant=chosen("tenant"), as_json=wants_json())
            try:
                body(context, *args, **kwargs)
            except Failure as failure:
                raise with_near_names(context, failure) from None

    command = update_wrapper(run, body)
    for option in (json_option, data_dir_option, key_option, context_option, url_option):
        command = option(command)
    return command


def with_tenant(body: Callable[Concatenate[AdminContext, P], None]) -> Callable[P, None]:
    """Add the options of every admin command, and `--tenant`, to `body`."""
    return tenant_option(with_admin(body))


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before a change of consequence; without a terminal, only `--yes` confirms.

    Raises:
        Failure: the answer was no, or there is no terminal.
    """
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise Failure("there is no terminal to ask for a confirmation: give --yes", ExitCode.USAGE)
    if not ask_yes_no(question):
        raise Failure("aborted; nothing was changed", ExitCode.FAILED)
