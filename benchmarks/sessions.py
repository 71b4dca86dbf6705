"""Memory of idle sessions of the handshake era and of open streams of both eras, in the replica and in Redis."""

import http.client
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import unquote, urlsplit

import redis

from benchmarks.figures import Table, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_servers, scratch
from benchmarks.processes import Failed, memory_mb
from benchmarks.requests import ACCEPT, HANDSHAKE, INITIALIZE, MODERN, PROTOCOL

_SESSIONS = 2000
_WARM = 500
_COUNT = 200
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def measure_sessions(rounds: int) -> Table:
    """Measure sessions and streams; return their table."""
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
    streams = {name: _weigh_streams(ask, rounds) for name, ask in _STREAMS.items()}
    rows = (
        ("a session: gateway (growth of its resident memory)", spread(here)),
        ("a session: Redis (growth of used_memory)", spread(there)),
        *((f"an open {name}: gateway", spread(found)) for name, found in streams.items()),
    )
    streams_note = (
        f"{_COUNT:,} streams a round, each on a connection of its own, which counts with it, as does its session where "
        f"its era has them; {_COUNT:,} before them are not counted."
    )
    sessions_note = (
        f"{_SESSIONS:,} sessions a round, opened and acknowledged (initialize, notifications/initialized), then left "
        f"alone; {_WARM} before them are not counted. Resident memory grows in steps: single rounds may show none."
    )
    notes = (sessions_note, streams_note)
    return Table(title="Idle sessions and streams", columns=("what and where", "bytes each"), rows=rows, notes=notes)


def _weigh_streams(ask: "_Ask", rounds: int) -> list[float]:
    """Measure the memory per open stream in a new replica; a first round, which is not counted, warms it up."""
    found: list[float] = []
    with ExitStack() as stack:
        servers, folder = stack.enter_context(running_servers()), stack.enter_context(scratch())
        gateway = stack.enter_context(running_gateway(folder, servers=servers))
        key = gateway.tenant("bench")
        for _ in range(rounds + 1):
            before = memory_mb(gateway.pid, "VmRSS")
            for _ in range(_COUNT):
                connection = stack.enter_context(
                    closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30))
                )
                stack.enter_context(closing(ask(gateway, connection, key)))
            found.append((memory_mb(gateway.pid, "VmRSS") - before) * 1e6 / _COUNT)
    return found[1:]


def _listen_in_session(
    gateway: RunningGateway, connection: http.client.HTTPConnection, key: str
) -> http.client.HTTPResponse:
    headers = {"authorization": f"Bearer {key}", "accept": "text/event-stream", "mcp-protocol-version": HANDSHAKE}
    connection.request("GET", "/t/bench/mcp", headers={**headers, "mcp-session-id": gateway.open_session("bench", key)})
    return _first_line(connection)


def _listen_alone(_: RunningGateway, connection: http.client.HTTPConnection, key: str) -> http.client.HTTPResponse:
    envelope: dict[str, Any] = {f"{PROTOCOL}/protocolVersion": MODERN, f"{PROTOCOL}/clientCapabilities": {}}
    params: dict[str, Any] = {"_meta": envelope, "notifications": {"toolsListChanged": True}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "accept": ACCEPT}
    more = {"mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen"}
    connection.request("POST", "/t/bench/mcp", body, headers | more)
    return _first_line(connection)


def _first_line(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    """Return the response after its first event has arrived."""
    answer = connection.getresponse()
    if answer.status != http.HTTPStatus.OK:
        raise Failed(f"{answer.status}: {answer.read()[:300]!r}")
    answer.readline()
    return answer


_Ask = Callable[[RunningGateway, http.client.HTTPConnection, str], http.client.HTTPResponse]
_STREAMS: Mapping[str, _Ask] = {"GET stream (with its session)": _listen_in_session, "listen stream": _listen_alone}


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
    output = answer.read()
    if answer.status >= 300:
        raise Failed(f"{answer.status}: {output[:300]!r}")
    return answer.headers["mcp-session-id"]


def _used(url: str) -> int:
    with redis.Redis(unix_socket_path=unquote(urlsplit(url).path)) as client:
        memory = client.info("memory")  # pyright: ignore[reportUnknownMemberType]  # partly typed
        return int(memory["used_memory"])
