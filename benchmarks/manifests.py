"""Cost of the objects of many tenants: one application of manifests per tenant against one request per object."""

import http.client
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.figures import Table, ratio, spread
from benchmarks.gateways import RunningGateway, running_gateway, scratch
from benchmarks.processes import Failed, cpu_ns, descendants

_COLUMNS = (
    "work",
    "requests",
    "seconds",
    "CPU of the gateway, ms per object",
    "CPU of PostgreSQL, ms per object",
    "ratio of the gateway's CPU to single requests",
)
_TIMEOUT_S = 180
_OK = (200, 201)
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Object:
    """One object: the path of its single request and its body, and the manifest of the same."""

    path: str
    body: Body
    manifest: Body


@dataclass(slots=True)
class _Seen:
    """The figures of one kind of work, one of each round."""

    requests: int = 0
    seconds: list[float] = field(default_factory=list[float])
    gateway_ms: list[float] = field(default_factory=list[float])
    database_ms: list[float] = field(default_factory=list[float])


class _Client:
    """One connection of an operator that is kept open."""

    def __init__(self, gateway: RunningGateway) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=_TIMEOUT_S)
        self._headers: Mapping[str, str] = gateway.operator
        self.requests = 0

    def send(self, method: str, path: str, body: Body) -> None:
        """Send a request and read the response.

        Raises:
            Failed: it was refused.
        """
        self._connection.request(method, f"/admin/v1{path}", json.dumps(body).encode(), dict(self._headers))
        answer = self._connection.getresponse()
        content = answer.read()
        self.requests += 1
        if answer.status not in _OK:
            raise Failed(f"{method} {path}: {answer.status} {content[:500]!r}")


def measure_manifests(tenants: int, objects: int, rounds: int) -> Table:
    """Measure creation, an equal repetition and the comparison of so many objects of so many tenants."""
    seen: dict[str, _Seen] = {}
    with scratch() as folder, running_gateway(folder) as gateway:
        for number in range(rounds):
            _measure_round(gateway, [f"t{number}-{tenant}" for tenant in range(tenants)], objects, seen)
    single = {name: seen[name] for name in ("creation", "repetition")}
    notes = (
        f"{tenants} tenants with {objects} objects each, tools and prompts, one after another on one connection.",
        "Repetition: the same objects again, of which none is written. Dry run: the comparison of `gateway diff`.",
        "The CPU of PostgreSQL is that of all its processes.",
    )
    rows = [_row(name, one, single["creation" if "creation" in name else "repetition"]) for name, one in seen.items()]
    return Table(title="Configuration as code", columns=_COLUMNS, rows=tuple(rows), notes=notes)


def _measure_round(gateway: RunningGateway, slugs: Sequence[str], count: int, seen: dict[str, _Seen]) -> None:
    objects = [_object(number) for number in range(count)]
    manifests = [one.manifest for one in objects]
    for prefix in ("s", "a"):
        for slug in slugs:
            gateway.tenant(f"{prefix}{slug}")

    def single(client: _Client) -> None:
        for slug in slugs:
            for one in objects:
                client.send("PUT", f"/tenants/s{slug}{one.path}", one.body)

    def apply(**terms: object) -> Callable[[_Client], None]:
        def run(client: _Client) -> None:
            for slug in slugs:
                client.send("POST", f"/tenants/a{slug}/apply", {"objects": manifests, "set": "bench", **terms})

        return run

    works: Mapping[str, Callable[[_Client], None]] = {
        "creation": single,
        "creation, applied": apply(),
        "repetition": single,
        "repetition, applied": apply(),
        "repetition, dry run": apply(dry_run=True),
    }
    for name, work in works.items():
        _measure(gateway, work, seen.setdefault(name, _Seen()), len(slugs) * count)


def _measure(gateway: RunningGateway, work: Callable[[_Client], None], seen: _Seen, objects: int) -> None:
    client = _Client(gateway)
    database = descendants(gateway.pid)
    cpu, of_database, started = cpu_ns(gateway.pid), sum(map(cpu_ns, database)), time.perf_counter()
    work(client)
    seen.seconds.append(time.perf_counter() - started)
    seen.gateway_ms.append((cpu_ns(gateway.pid) - cpu) / 1e6 / objects)
    seen.database_ms.append((sum(map(cpu_ns, database)) - of_database) / 1e6 / objects)
    seen.requests = client.requests


def _row(name: str, seen: _Seen, single: _Seen) -> tuple[str, ...]:
    return (
        name,
        f"{seen.requests:,}",
        spread(seen.seconds, 1),
        spread(seen.gateway_ms, 2),
        spread(seen.database_ms, 2),
        ratio(seen.gateway_ms, single.gateway_ms),
    )


def _object(number: int) -> _Object:
    """A tool, or every fifth time a prompt."""
    kind, plural = ("prompt", "prompts") if number % 5 == 0 else ("tool", "tools")
    name = f"{kind}_{number}"
    definition: Body = {"name": name, "description": f"Returns the greeting number {number} of the household."}
    if kind == "tool":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        definition["inputSchema"] = schema
        handler: Body = {"kind": "template", "text": "Hello, {{ name }}!"}
    else:
        definition["arguments"] = [{"name": "text", "required": True}]
        message = {"role": "user", "content": {"type": "text", "text": "Please review {{ text }}"}}
        handler = {"kind": "template", "messages": [message]}
    members: Body = {"definition": definition, "handler": handler, "safety": "safe"}
    return _Object(f"/{plural}/{name}", members, {"kind": kind, "name": name, "members": members})
