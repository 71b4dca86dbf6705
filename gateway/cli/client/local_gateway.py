"""Runs a gateway in this process, for commands that prepare it before they serve."""

import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio

from gateway.app.exception_leaves import first_leaf
from gateway.app.server.running import Running
from gateway.cli.failures import Failure, failure_of
from gateway.domain.fairness.thread_kinds import OWN_PROGRAMS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.tenancy.policy import LOCAL_POLICY
from gateway.errors import GatewayError
from gateway.settings import Settings, load_settings
from gateway.telemetry.standard_streams import replace_standard_streams

Serving = Callable[..., Awaitable[None]]
"""Serves until a signal: it takes the settings, and `ready`."""


def read_settings(**overrides: object) -> Settings:
    """Load the settings of this process.

    Raises:
        Failure: a setting is invalid; the message names it.
    """
    try:
        return load_settings(**overrides)
    except GatewayError as error:
        raise failure_of(error) from None


def local_settings(*, port: int | None, folder: Path, reachable: tuple[str, ...]) -> Settings:
    """Load settings for this machine only: loopback, embedded servers and generated keys override the configuration.

    Raises:
        Failure: a setting is invalid; the message names it.
    """
    own: dict[str, object] = {
        "host": "127.0.0.1",
        "admin_host": None,
        "admin_port": None,
        "data_dir": folder,
        "public_url": None,
        "database_url": None,
        "migration_database_url": None,
        "redis_url": None,
        "operator_key": (),
        "secret_keys": (),
    }
    own |= {} if port is None else {"port": port}
    configured = read_settings(**own)
    if "tenant_policy" not in configured.model_fields_set:
        own["tenant_policy"] = LOCAL_POLICY
    if "log_level" not in configured.model_fields_set:
        own["log_level"] = "warning"
    return read_settings(**own, egress_allow=(*configured.egress_allow, *reachable))


def host(
    settings: Settings, prepare: Callable[[Running], None] | None = None, *, serving: Serving | None = None
) -> None:
    """Serve until a signal stops the gateway.

    `prepare` runs in a thread once the gateway accepts requests; its failure stops the gateway. `serving` serves with
    one process, unless another function is given.

    Raises:
        Failure: the gateway did not start or failed, or `prepare` raised the failure.
    """
    failures: list[Failure] = []
    replace_standard_streams()  # what `prepare` prints must not hold up the gateway either

    async def ready(running: Running) -> None:
        if prepare is None:
            return
        try:
            await run_in_thread(OWN_PROGRAMS, "", prepare, running)
        except Failure as failure:
            failures.append(failure)
            signal.raise_signal(signal.SIGTERM)

    try:
        anyio.run(
            partial(serving or _import_serve(), settings, ready=ready),
            backend_options={"use_uvloop": sys.platform != "win32"},
        )
    except (GatewayError, BaseExceptionGroup) as error:
        raise _failure_from(error) from error
    if failures:
        raise failures[0]


def _import_serve() -> Serving:
    from gateway.app.server.serve import serve  # noqa: PLC0415  # all modules of a replica: a supervisor serves without

    return serve


def _failure_from(error: BaseException) -> Failure:
    leaf = first_leaf(error, Failure, GatewayError)
    if isinstance(leaf, GatewayError):
        return failure_of(leaf)
    return leaf if isinstance(leaf, Failure) else Failure(f"unexpected {type(leaf).__name__}: {leaf}")
