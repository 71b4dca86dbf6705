"""Commands on the stores of this environment, without a running gateway; imported only when such a command runs."""

import fcntl
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import anyio

from gateway.app.installation import describe_installation
from gateway.app.local.loopback import is_loopback
from gateway.app.python.plugins import load_extras
from gateway.app.secrets import read_keys
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.identity.secret_keys.status import forget
from gateway.cli.client.local_gateway import read_settings
from gateway.cli.failures import failure_of
from gateway.cli.input.json_fields import JsonObject
from gateway.domain.findings import Finding, Verdict
from gateway.embedded.servers import EmbeddedServers
from gateway.errors import BrokenSetting, GatewayError
from gateway.settings import Settings
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store

_NO_SERVER = Finding(
    check="database",
    status=Verdict.FAILED,
    detail="no server is configured, and the data folder is empty",
    mend="start `gateway serve` once, or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL",
)


def examine(folder: Path, query_holder: Callable[[str, Path], list[JsonObject]]) -> tuple[list[JsonObject], str]:
    """Return the findings about the stores, and their place.

    `query_holder` requests them from the running gateway that uses the embedded servers of the folder.

    Raises:
        Failure: a setting is invalid, or the stores cannot be opened.
    """
    settings = read_settings(data_dir=folder)
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
            return query_holder(url, settings.data_dir), f"the gateway at {url}, with data in {settings.data_dir}"
        if not (settings.data_dir / "servers" / "postgres").is_dir():
            return _as_objects([_NO_SERVER]), str(settings.data_dir)
        return _as_objects(anyio.run(_examine_embedded, settings)), f"the servers below {settings.data_dir}"
    except GatewayError as error:
        raise failure_of(error) from None


def forget_key(folder: Path, name: str) -> None:
    """Give up the secret key of this name.

    Raises:
        Failure: a setting is invalid, or the database cannot be opened or has no such key.
    """
    settings = read_settings(data_dir=folder)
    try:
        anyio.run(_forget, settings, name)
    except GatewayError as error:
        raise failure_of(error) from None


async def _examine_embedded(settings: Settings) -> Sequence[Finding]:
    async with EmbeddedServers(settings.data_dir) as urls:
        return await _examine(settings, urls.database_url, urls.redis_url)


async def _examine(settings: Settings, database_url: str, redis_url: str) -> Sequence[Finding]:
    keys = read_keys(settings)
    facts = describe_installation(settings, keys, database_url, redis_url, code=load_extras(settings))
    return await Doctor(facts).examine()


async def _forget(settings: Settings, name: str) -> None:
    cipher = EnvelopeCipher(read_keys(settings).secret_keys)
    if settings.database_url is not None:
        await _forget_at(settings.database_url.get_secret_value(), cipher, name)
        return
    if not (settings.data_dir / "servers" / "postgres").is_dir():
        raise BrokenSetting(f"{settings.data_dir} has no database; set GATEWAY_DATABASE_URL, or give --data-dir")
    async with EmbeddedServers(settings.data_dir) as urls:
        await _forget_at(urls.database_url, cipher, name)


async def _forget_at(url: str, cipher: EnvelopeCipher, name: str) -> None:
    async with Store(url, pool_size=1) as store:
        await forget(store, cipher, name)


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
