"""Cost of a caller's identity: access tokens and access rules against a plain key, call by call in short slices.

The slices of one round follow each other, so that other load of the machine reaches all of them. Each round gives one
ratio to the key; the medians of these ratios are the figures.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack

import httpx

from benchmarks.figures import Table, percentile, spread
from benchmarks.gateways import PUBLIC_URL, RunningGateway, running_gateway, running_upstream, scratch
from benchmarks.measure import Effort, LoadGenerator, Target, check
from benchmarks.requests import CALL, HANDSHAKE, MODERN, document, handshake, modern
from benchmarks.tokens import GROUPS, access_token
from gateway.app.readiness import Readiness
from tests.support import gateway as test_gateway
from tests.support.authorization import Application, InTurn, register
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.upstream import recording_upstream

_CONNECTIONS = 16
_ROUNDS_PER_ROUND = 8
"""Rounds here for each round of other parts: a slice has few calls, so that many pairs are compared."""
_SLICE_CALLS = 500
_SLICE_SECONDS = 1.5
_CROWD = 256
_REST_S = 3.1
"""Longer than a caller is cached, so that each call of a crowd checks its credential again."""
_ROUNDS_PER_RESTED = 2
_MAX_SECONDS = 600
"""A token that the gateway issued is valid for 15 minutes; on a slow machine, fewer rounds are made."""
_RULES = 200
_NOTES = (
    (
        "Each round has a slice of calls per row, in turn; the ratio is to the key of the same era in the same round: "
        "the median over all rounds with its quartiles."
    ),
    "Other load only adds to a time: on a nearly idle machine, the ratio of the lowest times is the steadiest.",
    "Tokens have 60 groups (about 1,400 bytes). Rules: each of 200 denies the tool to another group, so none applies.",
    (
        "The bars: access tokens within 5 %, rules that do not apply within 1 %. The second key shows the noise. In "
        "rows of 256, each caller makes one call, after a pause in which its cached result has ended."
    ),
)


def measure_credentials(generator: LoadGenerator, effort: Effort) -> Table:
    """Measure calls with each kind of credential and return their table."""
    with ExitStack() as stack:
        port, _ = stack.enter_context(running_upstream())
        gateway = stack.enter_context(running_gateway(stack.enter_context(scratch()), upstream_port=port))
        callers = _callers(gateway, port)
        targets = [
            [_target(gateway, era, name, slug, credentials=(credential,)) for name, slug, credential in callers]
            for era in (MODERN, HANDSHAKE)
        ]
        rested = [_target(gateway, MODERN, *each) for each in _many_callers(gateway, port)]
        ends_at = time.monotonic() + _MAX_SECONDS
        for number in range(effort.rounds * _ROUNDS_PER_ROUND):
            if time.monotonic() > ends_at:
                break
            for era in targets:
                turn = number % len(era)
                _run_round(generator, [*era[turn:], *era[:turn]], effort)
            if number % _ROUNDS_PER_RESTED == 0:
                _run_round(generator, rested, effort, rest_s=_REST_S)
    targets.append(rested)
    check(each for era in targets for each in era)
    rows = [_row(each, era[0]) for era in targets for each in era]
    columns = ("caller", "CPU per call, µs", "ratio to the key", "quartiles", "ratio of the lowest", "rounds")
    return Table(title="Identity of the caller", columns=columns, rows=tuple(rows), notes=_NOTES)


def _callers(gateway: RunningGateway, upstream_port: int) -> Sequence[tuple[str, str, str]]:
    """Return names, tenants and credentials of the callers; the first is the one to which others are compared."""
    raw = json.dumps(document(upstream_port, 1)).encode()
    key, ruled = [gateway.tenant(slug) for slug in ("plain", "ruled")]
    for slug in ("plain", "ruled"):
        gateway.add_source(slug, raw)
    another = gateway.send("POST", "/tenants/plain/keys", json.dumps({"name": "b", "scopes": ["mcp"]}).encode())["key"]
    rules = [
        {"effect": "deny", "who": [f"group:bench:other-{number}"], "what": {"names": [CALL["name"]]}}
        for number in range(_RULES)
    ]
    gateway.send("PUT", "/tenants/ruled/access", json.dumps({"rules": rules}).encode())
    token, ruled_token = [
        gateway.accept_token(slug, f"http://127.0.0.1:{upstream_port}") for slug in ("plain", "ruled")
    ]
    issued = asyncio.run(_issue(gateway, "plain"))
    return (
        ("key", "plain", key),
        ("another key", "plain", another),
        ("access token of an issuer", "plain", token),
        ("access token that the gateway issued", "plain", issued),
        (f"key, {_RULES} access rules about others", "ruled", ruled),
        (f"access token of an issuer, {_RULES} access rules about others", "ruled", ruled_token),
    )


async def _issue(gateway: RunningGateway, slug: str) -> str:
    """Return an access token that the gateway issues to an application of a person."""
    transport = InTurn([httpx.URL(gateway.url)])
    async with (
        recording_upstream() as server,
        httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL) as http,
        httpx.AsyncClient(base_url=f"{gateway.url}/admin/v1", headers=gateway.operator, timeout=60) as admin,
    ):
        allowed = await admin.put(f"/tenants/{slug}/egress", json={"allow": [server.authority]})
        allowed.raise_for_status()
        running = test_gateway.RunningGateway(PUBLIC_URL, admin, http, Readiness())
        server.headers = (("connection", "close"),)  # no connection is open when this loop ends
        provider = LocalProvider(new_issuer(server), {"groups": GROUPS})
        await add_provider(running, slug, provider, name="people")
        client = await register(running, slug)
        async with httpx.AsyncClient(transport=InTurn([httpx.URL(gateway.url)]), base_url=PUBLIC_URL) as browser:
            issued = await Application(running, provider, client["id"], browser, slug).tokens()
    token: str = issued["access_token"]
    return token


def _many_callers(gateway: RunningGateway, upstream_port: int) -> Sequence[tuple[str, str, Sequence[str]]]:
    """Return names, tenants and credentials of crowds, of which each caller has a credential of its own."""
    audience, issuer = f"{PUBLIC_URL}/t/plain/mcp", f"http://127.0.0.1:{upstream_port}"
    names = [f"caller-{number}" for number in range(_CROWD)]
    bodies = (json.dumps({"name": name, "scopes": ["mcp"]}).encode() for name in names)
    keys = [str(gateway.send("POST", "/tenants/plain/keys", body)["key"]) for body in bodies]
    tokens = [access_token(issuer, audience, name) for name in names]
    return (f"{_CROWD} keys", "plain", keys), (f"{_CROWD} access tokens of an issuer", "plain", tokens)


def _target(gateway: RunningGateway, era: str, name: str, slug: str, *, credentials: Sequence[str]) -> Target:
    path = f"/t/{slug}/mcp"
    if era == MODERN:
        requests = [modern(path, "tools/call", CALL, key=each) for each in credentials]
    else:
        sessions = [(each, gateway.open_session(slug, each)) for each in credentials]
        requests = [handshake(path, "tools/call", CALL, key=key, session=session) for key, session in sessions]
    return Target(f"{era}, {name}", gateway.port, gateway.pid, requests)


def _run_round(generator: LoadGenerator, targets: Sequence[Target], effort: Effort, *, rest_s: float = 0.0) -> None:
    """Take one slice of each target; a crowd makes one call each."""
    seconds = min(effort.seconds, _SLICE_SECONDS)
    for target in targets:
        calls = min(effort.calls, _SLICE_CALLS) if len(target.requests) == 1 else len(target.requests)
        seen = generator.sample(target, connections=_CONNECTIONS, calls=calls, seconds=seconds, rest_s=rest_s)
        target.samples.setdefault(_CONNECTIONS, []).append(seen)


def _row(target: Target, key: Target) -> tuple[str, ...]:
    cpu, base = target.each(_CONNECTIONS, "cpu_us"), key.each(_CONNECTIONS, "cpu_us")
    ratios = [one / other for one, other in zip(cpu, base, strict=True)]
    quartiles = f"{percentile(ratios, 25):.3f}–{percentile(ratios, 75):.3f}"
    lowest = f"{min(cpu) / min(base):.3f}"
    return target.name, spread(cpu), f"{statistics.median(ratios):.3f}", quartiles, lowest, str(len(cpu))
