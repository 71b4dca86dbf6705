"""The migration as Compose and Kubernetes run it: the image's command, their variables, the login of the owner."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.store.engine import Store
from tests.deploy.compose import read_compose
from tests.deploy.dockerfile import image_variables
from tests.deploy.kustomize import build
from tests.deploy.test_kubernetes import KUBERNETES
from tests.deploy.topology import clean_environment
from tests.support.commands import run_gateway
from tests.support.servers import TestServers

Job = tuple[list[str], dict[str, str]]
"""The words behind `gateway`, and the variables."""


def _compose() -> Job:
    service: dict[str, Any] = read_compose()["services"]["migrate"]
    return service["command"], service["environment"]


def _kubernetes() -> Job:
    job = next(manifest for manifest in build(KUBERNETES / "overlays/production") if manifest["kind"] == "Job")
    container = job["spec"]["template"]["spec"]["containers"][0]
    return container["args"], {entry["name"]: entry["value"] for entry in container["env"]}


@pytest.mark.parametrize("read", [_compose, _kubernetes])
async def test_the_job_migrates_an_empty_database_and_does_no_harm_a_second_time(
    read: Callable[[], Job], servers: TestServers, tmp_path: Path
) -> None:
    """Ours: once per release is enough, twice is safe, and no serving replica needs a change (SRV-6)."""
    words, notified = read()
    secret = tmp_path / "migration_database_url"
    variables = {name: str(secret) if name.endswith("_FILE") else value for name, value in notified.items()}
    environment = clean_environment() | image_variables() | variables
    with servers.empty_database() as database:
        secret.write_text(f"{database.owner_url}\n")
        for _ in range(2):
            ended = await run_gateway(words, folder=tmp_path, variables=environment)
            assert ended.code == 0, ended.err
        async with Store(database.app_url) as store:
            await store.check()

    assert [path.name for path in tmp_path.iterdir()] == [secret.name], "no data folder on a root that is read-only"
