"""What an idle session of the handshake era weighs, on the replica and in Redis."""

import http.client
import json
from urllib.parse import unquote, urlsplit

import redis

from benchmarks.figures import Table, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_servers, scratch
from benchmarks.processes import Failed, memory_mb
from benchmarks.requests import ACCEPT, HANDSHAKE, INITIALIZE

_SESSIONS = 2000
_WARM = 500
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def measure_sessions(rounds: int) -> Table:
    """The table of sessions."""
    here: list[float] = []
    there: list[float] = []
    with running_servers() as servers, scratch() as folder, running_gateway(folder, servers=servers) as gateway:
        key = gateway.tenant("bench")
        _open(gateway, key, _WARM)
        for _ in range(rounds):
            before = memory_mb(gateway.pid, "VmRSS"), _used(servers.redis_url)
            _open(gateway, key, _SESSIONS)
            here.append((memory_mb(gateway.pid, "VmRSS") - before[0]) * 1e6 / _SESSIONS)
            there.append((_used(servers.redis_url) - before[1]) / _SESSIONS)
    rows = (
        ("gateway (growth of its resident memory)", spread(here)),
        ("Redis (growth of used_memory)", spread(there)),
    )
    notes = (
        f"{_SESSIONS:,} sessions a round, opened and acknowledged (initialize, notifications/initialized), then left "
        f"alone; {_WARM} before them are not counted. Resident memory grows in steps: single rounds may show none."
    )
    return Table(title="Idle handshake sessions", columns=("where", "bytes per session"), rows=rows, notes=(notes,))


def _open(gateway: RunningGateway, key: str, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "accept": ACCEPT}
    begin = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
    acknowledge = json.dumps(_INITIALIZED)
    for _ in range(count):
        session = _post(connection, begin, headers)
        if session is None:
            raise Failed("initialize opened no session")
        more = {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}
        _post(connection, acknowledge, headers | more)
    connection.close()


def _post(connection: http.client.HTTPConnection, body: str, headers: dict[str, str]) -> str | None:
    connection.request("POST", "/t/bench/mcp", body, headers)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status >= 300:
        raise Failed(f"{answer.status}: {said[:300]!r}")
    return answer.headers["mcp-session-id"]


def _used(url: str) -> int:
    with redis.Redis(unix_socket_path=unquote(urlsplit(url).path)) as client:
        memory = client.info("memory")  # pyright: ignore[reportUnknownMemberType]  # partly typed
        return int(memory["used_memory"])
