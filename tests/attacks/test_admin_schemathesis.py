"""The admin API under generated requests: whatever is sent, no server error, nothing undocumented, no other tenant.

Requests are made from the OpenAPI document that the gateway serves, some as it describes them and some deliberately
not, with the operator's key and with that of one of two tenants.
"""

import copy
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import anyio.to_thread
import hypothesis
import pytest
import requests
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from gateway.admin.routes.index import ENDPOINTS
from tests.support.documents import pets
from tests.support.examples import IS_FUZZING, at_least
from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource

EXAMPLES = at_least(2, share=40)
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
OPERATIONS = [(endpoint.method, endpoint.path) for endpoint in ENDPOINTS]
ACCEPTED = [
    ("GET", "/tenants"),
    ("GET", "/tenants/{t}"),
    ("POST", "/tenants/{t}/keys"),
    ("GET", "/tenants/{t}/sources"),
    ("PUT", "/tenants/{t}/policy"),
    ("GET", "/doctor"),
]
"""Scopes that the operator has at least once."""
OPERATORS = [("GET", "/doctor"), ("GET", "/tenants"), ("POST", "/tenants")]
"""Scopes that a tenant never has."""
SAMPLE = [one for n, one in enumerate(OPERATIONS) if n % 7 == 0 or one in (*ACCEPTED, *OPERATORS)]
"""The operations of `make test`: strategies for one operation take 50 ms to make."""
AT_THE_EDGE = {414, 431}
"""Refusals before routing; the document describes them once."""

SAMPLES = [
    static_tool("made"),
    text_prompt("made"),
    text_resource("docs://made"),
    template("docs://made/{id}", {"kind": "http", "method": "GET", "url": "http://169.254.169.254/{{ id }}"}),
]
"""Primitives that are valid for one family and not for the others."""
NEVER_DIALLED = "http://169.254.169.254/openapi.json"


@dataclass(frozen=True, slots=True)
class Caller:
    """Callers, the tenants and objects that requests name beside generated ones, and the callers whose requests may
    succeed.
    """

    key: str
    tenants: Sequence[str]
    names: Sequence[str]
    own: Sequence[str]


@dataclass(frozen=True, slots=True)
class Target:
    """A running gateway with the tenants `a` and `b`; the operator works on a third one, `scratch`."""

    gateway: RunningGateway
    schemathesis: Any
    """The library, imported by the test that uses it: each test process that collects this module saves 0.2 s."""
    checks: Sequence[Any]
    described: Any
    """The operations of the document, read once: a reading takes longer than an operation's requests."""
    callers: Mapping[str, Caller]


@pytest.fixture
async def target(database_url: str, redis_url: str) -> AsyncGenerator[Target]:
    """Two tenants with a source and keys each, and one that the operator may do everything to."""
    async with running_gateway(database_url, redis_url) as gateway:
        ids: dict[str, str] = {}
        for slug in ("a", "b"):
            await _furnish(gateway, slug)
            made = await gateway.admin.post(f"/tenants/{slug}/keys", json={"name": "k", "scopes": ["mcp"]})
            ids[slug] = made.json()["id"]
        key = await gateway.create_key("a", "admin")
        other = (await gateway.admin.get("/tenants/b")).json()["id"]
        slugs = (*ids, "scratch")
        names = ["pets", *(f"{slug}_{tool}" for slug in slugs for tool in ("list_pets", "own")), *ids.values()]
        callers = {
            "operator": Caller(OPERATOR_KEY, ["scratch"], names, ["scratch"]),
            "tenant": Caller(key, ["a", "a", "b", other], names, ["a"]),
        }
        document = (await gateway.admin.get("/openapi.json")).json()
        library: Any = import_module("schemathesis")
        yield Target(
            gateway,
            library,
            [getattr(library.checks, name) for name in CHECKS],
            library.openapi.from_dict(document),
            callers,
        )


async def _furnish(gateway: RunningGateway, slug: str) -> None:
    """A tenant with a source, unless it is there."""
    if (await gateway.admin.get(f"/tenants/{slug}")).status_code == 404:
        await gateway.create_tenant(slug)
        await gateway.import_document(slug, pets("https://pets.example"), name="pets", prefix=slug)
        await add(gateway, slug, "tools", static_tool(f"{slug}_own"))
        await add(gateway, slug, "prompts", text_prompt(f"{slug}_own"))
        await add(gateway, slug, "resources", text_resource(f"docs://{slug}"))
        await add(gateway, slug, "profiles", {"name": f"pets-{slug}"})


async def _everything(gateway: RunningGateway, slug: str) -> list[Any]:
    """Objects of a tenant, as the operator sees them."""
    nouns = ("tools", "resources", "resource-templates", "prompts", "profiles", "credentials")
    parts = ("", "/keys", "/sources", "/sources/pets/report", "/policy", "/audit", *(f"/{noun}" for noun in nouns))
    return [(await gateway.admin.get(f"/tenants/{slug}{part}")).json() for part in parts]


@pytest.mark.parametrize(
    "operations", [SAMPLE, pytest.param(OPERATIONS, marks=pytest.mark.long)], ids=["sample", "every operation"]
)
async def test_no_generated_request_breaks_the_admin_api(target: Target, operations: Sequence[tuple[str, str]]) -> None:
    """Ours: any request has a documented answer, and of another tenant nothing is seen or moved (TEN-5)."""
    before = await _everything(target.gateway, "b")
    statuses: dict[tuple[str, str, str], set[int]] = {
        (caller, *operation): set() for caller in target.callers for operation in operations
    }

    for operation in operations:
        await _furnish(target.gateway, "scratch")
        for mode in target.schemathesis.GenerationMode:
            await anyio.to_thread.run_sync(_attack, target, operation, mode, statuses)

    assert await _everything(target.gateway, "b") == before
    assert all(statuses.values())
    assert all(min(statuses["operator", *operation]) < 300 for operation in ACCEPTED)
    assert all(min(statuses["tenant", *operation]) >= 400 for operation in OPERATORS)


def _attack(
    target: Target, operation: tuple[str, str], mode: object, statuses: dict[tuple[str, str, str], set[int]]
) -> None:
    """Generated requests of one operation, each sent for every caller and each answer held against the document."""
    method, route = operation
    described = target.described[route][method]
    session = requests.Session()
    session.trust_env = False

    @hypothesis.settings(
        max_examples=EXAMPLES,
        derandomize=not IS_FUZZING,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @hypothesis.given(data=st.data())
    def send(data: st.DataObject) -> None:
        case: Any = data.draw(described.as_strategy(generation_mode=mode))
        path: dict[str, Any] = case.path_parameters or {}
        body: Any = case.body  # sent for both callers: making a request takes longer than sending it twice
        for caller, who in target.callers.items():
            case.path_parameters = dict(path)
            case.body = copy.deepcopy(cast("dict[str, Any]", body)) if isinstance(body, dict) else body
            _aim(case, data, who)
            statuses[caller, *operation].add(_send(target, session, case, who))

    try:
        with session:
            send()
    except BaseExceptionGroup as found:  # the event loop's thread would not survive a group
        reported = "\n".join(str(one)[:2000] for one in found.exceptions)
        raise AssertionError(f"{method} {route}: {reported}") from None


def _send(target: Target, session: requests.Session, case: Any, who: Caller) -> int:
    """Send it with the caller's key; the status of an answer that is as documented."""
    answer = case.call(
        base_url=f"{target.gateway.url}/admin/v1", session=session, headers={"authorization": f"Bearer {who.key}"}
    )
    if answer.status_code in AT_THE_EDGE:
        assert answer.headers["content-type"] == ["application/problem+json"]
    else:
        case.validate_response(answer, checks=target.checks)
    if answer.status_code < 300 and "t" in (case.path_parameters or {}):
        assert case.path_parameters["t"] in who.own
    status: int = answer.status_code
    return status


def _aim(case: Any, data: st.DataObject, who: Caller) -> None:
    """Most requests name what exists, and none names an address that could be dialled."""
    path: dict[str, Any] = case.path_parameters or {}
    for name in path:
        known = [*who.tenants] * 3 if name == "t" else who.names
        path[name] = data.draw(st.sampled_from([*known, "none", "%2e%2e", "a b", "ключ"]))
    if "for_s" in (case.query or {}):
        case.query["for_s"] = 1  # a response that lasts as long as it is asked to
    sent: object = case.body
    body = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
    if isinstance(body.get("url"), str):
        body["url"] = NEVER_DIALLED
    if isinstance(body.get("definition"), dict) and isinstance(body.get("handler"), dict):
        body.update(data.draw(st.sampled_from([{}, *SAMPLES])))
