"""The embedded servers against the operating system: started, kept, claimed, recovered and ended."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from gateway.embedded.binaries import postgres_programs, redis_program
from gateway.embedded.child import Account
from gateway.embedded.servers import EmbeddedServers, EmbeddedUrls
from gateway.errors import DatabaseUnavailable, EmbeddedServerFailed
from gateway.store.database.connection import connect_owner

_ROOT = Path(__file__).parents[3]
_IS_ROOT = os.geteuid() == 0
_RUN = """
import asyncio, sys
from pathlib import Path
from gateway.embedded.servers import EmbeddedServers

async def main():
    async with EmbeddedServers(Path(sys.argv[1])) as urls:
        print(urls.migration_database_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
async def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory in which both servers have run once and kept a row and a key: to create one takes seconds."""
    folder = tmp_path_factory.mktemp("created")
    async with EmbeddedServers(folder) as urls:
        await _sql(urls, "create table kept as select 6 as n")
        assert await _redis(urls, "SET kept 6") == b"+OK\r\n"
    return folder


@pytest.fixture
def data_dir(created: Path, tmp_path: Path) -> Path:
    """A copy of it, with its owners."""
    subprocess.run(["cp", "-a", f"{created}/.", str(tmp_path)], check=True)
    return tmp_path


async def _sql(urls: EmbeddedUrls, statement: str) -> object:
    connection = await connect_owner(urls.migration_database_url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def _redis(urls: EmbeddedUrls, command: str) -> bytes:
    async with await anyio.connect_unix(urls.redis_url.removeprefix("unix://")) as stream:
        await stream.send(f"{command}\r\n".encode())
        return await stream.receive()


def _start_apart(data_dir: Path, *prefix: str) -> "subprocess.Popen[bytes]":
    command = [*prefix, sys.executable, "-c", _RUN, str(data_dir)]
    return subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _await_ready(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def _end(process: "subprocess.Popen[bytes]") -> int:
    process.communicate(timeout=30)
    return process.returncode


def _start_orphan(folder: Path) -> "subprocess.Popen[bytes]":
    """A Redis on the folder without a gateway, once it reports that it is ready."""
    command = [str(redis_program()), "--port", "0", "--unixsocket", str(folder / "orphan.sock")]
    orphan = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.PIPE)
    assert orphan.stdout is not None
    for line in orphan.stdout:
        if b"ready to accept connections" in line.lower():
            return orphan
    raise AssertionError("the orphan did not start")


async def test_data_is_kept_between_starts_for_one_user_and_one_gateway(data_dir: Path) -> None:
    """Ours: the embedded servers keep their data between starts, in folders that other users cannot open.

    The refusal of a second gateway names the process that holds them, and the remedies. The servers end with the first.
    """
    async with EmbeddedServers(data_dir) as urls:
        assert await _sql(urls, "select n from kept") == 6
        assert await _redis(urls, "GET kept") == b"$1\r\n6\r\n"
        socket = Path(urls.redis_url.removeprefix("unix://"))
        for folder in (".", "postgres", "redis", "sockets"):
            assert (data_dir / "servers" / folder).stat().st_mode & 0o777 == 0o700
        with pytest.raises(EmbeddedServerFailed, match=rf"process {os.getpid()}\).*GATEWAY_DATA_DIR"):
            await EmbeddedServers(data_dir).__aenter__()

    assert list(socket.parent.iterdir()) == []
    assert not (data_dir / "servers" / "postgres" / "postmaster.pid").exists()


async def test_a_killed_gateway_leaves_nothing_that_the_next_one_minds(data_dir: Path) -> None:
    """Ours: after kill -9 the next start has the data that was committed."""
    killed = _start_apart(data_dir)
    url = await anyio.to_thread.run_sync(_await_ready, killed)
    connection = await connect_owner(url)
    await connection.execute("create table survived as select 1 as n")
    connection.terminate()
    killed.kill()
    await anyio.to_thread.run_sync(_end, killed)

    with anyio.fail_after(30):
        async with EmbeddedServers(data_dir) as urls:
            assert await _sql(urls, "select n from survived") == 1


async def test_an_orphaned_server_is_ended_before_its_data_is_used(data_dir: Path) -> None:
    """Ours: a server that outlived its gateway does not write beside its successor."""
    orphan = await anyio.to_thread.run_sync(_start_orphan, data_dir / "servers" / "redis")

    # The orphan is our child and stays a zombie until we ask; the start must not wait for that.
    async with EmbeddedServers(data_dir) as urls:
        assert await _redis(urls, "PING") == b"+PONG\r\n"
        assert await anyio.to_thread.run_sync(_end, orphan) == 0


async def test_a_pid_file_of_another_process_is_ignored(data_dir: Path) -> None:
    """Ours: a number that now belongs to another process does not keep PostgreSQL from starting."""
    async with EmbeddedServers(data_dir):
        pid_file = data_dir / "servers" / "postgres" / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")

    async with EmbeddedServers(data_dir) as urls:
        assert await _sql(urls, "select 1") == 1


async def test_a_creation_that_was_cut_short_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a folder that PostgreSQL was still being created in is no database.

    Variables of another PostgreSQL do not move ours, neither when it is created nor when it starts.
    """
    monkeypatch.setenv("PGPORT", "6000")
    monkeypatch.setenv("PGDATA", "/nowhere")
    partial = tmp_path / "servers" / "postgres.new"
    partial.mkdir(parents=True)
    (partial / "PG_VERSION").write_text("18\n")

    async with EmbeddedServers(tmp_path) as urls:
        assert await _sql(urls, "show port") == "5432"
        assert await _sql(urls, "show fsync") == "on"
    assert not partial.exists()


async def test_data_of_another_version_is_not_touched(tmp_path: Path) -> None:
    """Ours: data that this PostgreSQL cannot read is reported, not touched."""
    data = tmp_path / "servers" / "postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("12\n")

    with pytest.raises(EmbeddedServerFailed, match="PostgreSQL 12"):
        await EmbeddedServers(tmp_path).__aenter__()
    assert (data / "PG_VERSION").read_text() == "12\n"


async def test_a_server_that_cannot_start_reports_the_reason(data_dir: Path) -> None:
    """Ours: the last words of a failed server are in the error, and nothing stays behind."""
    settings = data_dir / "servers" / "postgres" / "postgresql.conf"
    settings.write_text("no_such_setting = 1\n")

    with pytest.raises(EmbeddedServerFailed, match="no_such_setting"):
        await EmbeddedServers(data_dir).__aenter__()
    settings.write_text("")
    async with EmbeddedServers(data_dir) as urls:
        assert await _sql(urls, "select 1") == 1


async def test_a_path_too_long_for_sockets_gets_a_short_private_one(created: Path, tmp_path: Path) -> None:
    """Ours: a deep data directory works; the sockets then live in a folder that goes away again."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.parent.mkdir()
    subprocess.run(["cp", "-a", created, deep], check=True)
    async with EmbeddedServers(deep) as urls:
        assert await _sql(urls, "select 1") == 1
        sockets = Path(urls.redis_url.removeprefix("unix://")).parent
        assert tmp_path not in sockets.parents
        assert sockets.parent.stat().st_mode & 0o777 == 0o700
    assert not sockets.parent.exists()


@pytest.mark.skipif(not _IS_ROOT, reason="an ordinary user runs every other test here as itself")
async def test_an_ordinary_user_runs_both_servers_itself(tmp_path: Path) -> None:
    """Ours: no privilege is needed."""
    prefix = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("this system permits no user namespace")
    process = _start_apart(tmp_path, *prefix)

    assert (await anyio.to_thread.run_sync(_await_ready, process)).startswith("postgresql://")
    assert await anyio.to_thread.run_sync(_end, process) == 0


@pytest.mark.skipif(not _IS_ROOT, reason="only root runs PostgreSQL as another user")
def test_programs_in_a_private_folder_are_copied_to_where_they_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a virtual environment in a closed home folder is no obstacle, and the copy is made once."""
    unprivileged = Account.named("nobody")
    package = postgres_programs(None, tmp_path).parents[1]
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for name in (package.name, f"{package.name}.libs"):
        (private / name).symlink_to(package.with_name(name))
    monkeypatch.setattr(sys, "path", [str(private), *sys.path])

    copied = postgres_programs(unprivileged, tmp_path / "unreachable")
    assert tmp_path not in copied.parents
    assert postgres_programs(unprivileged, tmp_path / "unreachable") == copied
    shutil.rmtree(copied.parents[3])


async def test_a_cancelled_start_leaves_the_folder_free(tmp_path: Path) -> None:
    """Ours: a start that was cancelled while the servers start can be repeated."""
    with anyio.move_on_after(0.1):
        await EmbeddedServers(tmp_path).__aenter__()

    with anyio.fail_after(30):
        async with EmbeddedServers(tmp_path) as urls:
            assert await _sql(urls, "select 1") == 1


async def test_servers_survive_a_signal_meant_for_the_terminal(data_dir: Path) -> None:
    """Ours: Ctrl-C reaches the gateway only; it ends its servers itself."""
    process = _start_apart(data_dir)
    await anyio.to_thread.run_sync(_await_ready, process)
    pid = int((data_dir / "servers" / "postgres" / "postmaster.pid").read_text().split()[0])

    assert os.getpgid(pid) != os.getpgid(process.pid)
    process.send_signal(signal.SIGINT)
    await anyio.to_thread.run_sync(_end, process)
    assert not (data_dir / "servers" / "postgres" / "postmaster.pid").exists()


def _pid(data_dir: Path, name: str) -> int:
    file = {"postgres": "postgres/postmaster.pid", "redis": "redis.pid"}[name]
    return int((data_dir / "servers" / file).read_text().split()[0])


async def _answers_again(urls: EmbeddedUrls) -> None:
    with anyio.fail_after(30):
        while True:
            try:
                assert await _sql(urls, "select n from kept") == 7
                assert await _redis(urls, "GET kept") == b"$1\r\n7\r\n"
                return
            except (DatabaseUnavailable, OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                await anyio.sleep(0.02)


async def test_a_server_that_is_killed_is_started_again_with_its_data(data_dir: Path) -> None:
    """Ours: a crash of an embedded server costs a moment and nothing that was acknowledged (SRV-4)."""
    async with EmbeddedServers(data_dir) as urls:
        await _sql(urls, "update kept set n = 7")
        assert await _redis(urls, "SET kept 7") == b"+OK\r\n"
        for name in ("postgres", "redis"):
            first = _pid(data_dir, name)
            with capture_logs() as lines:
                os.kill(first, signal.SIGKILL)
                with anyio.fail_after(30):
                    while "embedded_server_restarted" not in [line["event"] for line in lines]:  # noqa: ASYNC110  # a log
                        await anyio.sleep(0.02)
            await _answers_again(urls)
            assert _pid(data_dir, name) != first
            assert [line["event"] for line in lines] == ["embedded_server_ended", "embedded_server_restarted"]


async def test_a_server_that_does_not_come_up_again_ends_its_block(data_dir: Path) -> None:
    """Ours: a permanent fault ends the gateway with the server's own last words (SRV-3)."""
    with anyio.fail_after(30), pytest.raises(EmbeddedServerFailed, match="no_such_setting"):
        async with EmbeddedServers(data_dir):
            (data_dir / "servers" / "postgres" / "postgresql.conf").write_text("no_such_setting = 1\n")
            os.kill(_pid(data_dir, "postgres"), signal.SIGKILL)
            await anyio.sleep_forever()

    (data_dir / "servers" / "postgres" / "postgresql.conf").write_text("")
    async with EmbeddedServers(data_dir) as urls:
        assert await _sql(urls, "select 1") == 1


async def test_a_server_that_ends_again_and_again_ends_its_block(data_dir: Path) -> None:
    """Ours: restarting for ever would hide that something is wrong (SRV-3)."""
    kills = 0
    with capture_logs() as lines, anyio.fail_after(30), pytest.raises(EmbeddedServerFailed, match="ended 4 times"):
        async with EmbeddedServers(data_dir):
            while True:
                if kills == sum(line["event"] == "embedded_server_restarted" for line in lines):
                    os.kill(_pid(data_dir, "redis"), signal.SIGKILL)
                    kills += 1
                await anyio.sleep(0.02)

    assert kills == 4


async def test_an_error_of_the_block_stays_unchanged(data_dir: Path) -> None:
    """Ours: a program with embedded servers catches its own errors as without them."""
    cause = ValueError("why")
    with pytest.raises(DatabaseUnavailable) as caught:
        async with EmbeddedServers(data_dir):
            raise DatabaseUnavailable("away") from cause

    assert caught.value.__cause__ is cause
