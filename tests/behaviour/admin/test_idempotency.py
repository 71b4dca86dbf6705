"""`Idempotency-Key` on POST requests of the admin API, and what a hostile or unlucky client makes of it."""

from collections import Counter

import anyio
import httpx
import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.serving import http_client

KEYS = "/tenants/acme/keys"
BODY = {"name": "agent", "scopes": ["mcp"]}


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await gateway.create_tenant("acme")
    return gateway


def _as(gateway: RunningGateway, key: str) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {key}"}
    return http_client(base_url=f"{gateway.url}/admin/v1", headers=headers)


async def _post(admin: httpx.AsyncClient, path: str = KEYS, *, key: str = "k-1", body: object = BODY) -> httpx.Response:
    return await admin.post(path, json=body, headers={"idempotency-key": key})


async def _names(gateway: RunningGateway) -> Counter[str]:
    return Counter(item["name"] for item in (await gateway.admin.get(KEYS)).json()["items"])


async def test_a_repeated_post_makes_one_key_and_has_the_first_answer(acme: RunningGateway) -> None:
    """Ours: an answer that was lost on its way can be fetched again for a day (ADM-1)."""
    first = await _post(acme.admin)
    again = [await _post(acme.admin), await _post(acme.admin, key='"k-1"')]

    assert first.status_code == 201
    assert "idempotency-replayed" not in first.headers
    for answer in again:
        assert (answer.status_code, answer.content) == (201, first.content)
        assert {answer.headers[name] == first.headers[name] for name in ("etag", "location", "content-type")} == {True}
        assert answer.headers["idempotency-replayed"] == "true"
        assert answer.headers["cache-control"] == "no-store"
    assert await _names(acme) == {"agent": 1}
    assert (await _post(acme.admin, key="k-2")).json()["key"] != first.json()["key"]


async def test_a_key_belongs_to_one_request(acme: RunningGateway) -> None:
    """draft-ietf-httpapi-idempotency-key-header: another request under a used key is 422 (ADM-1)."""
    first = await _post(acme.admin)
    others = [
        await _post(acme.admin, body={**BODY, "name": "other"}),
        await _post(acme.admin, "/tenants/acme/sources", body={"name": "x", "document": {}}),
        await _post(acme.admin, f"{KEYS}/{first.json()['id']}/rotate", body=None),
    ]

    assert [(other.status_code, other.json()["code"]) for other in others] == [(422, "idempotency.key_reused")] * 3
    assert (await _post(acme.admin)).content == first.content
    assert await _names(acme) == {"agent": 1}


async def test_a_new_keys_text_is_repeated_for_its_author_alone(acme: RunningGateway) -> None:
    """Ours: an Idempotency-Key and a body that are guessed do not reveal another principal's secret (TEN-4)."""
    first = await _post(acme.admin)
    await acme.create_tenant("globex")
    mine = await acme.create_key("acme", "admin", "mcp", subject="ops")
    peer = await acme.create_key("acme", "admin", "mcp", subject="ops")
    weak = await acme.create_key("acme", "mcp")
    foreign = await acme.create_key("globex", "admin", "mcp")
    texts = {first.json()["key"]}
    for key in (mine, peer):
        async with _as(acme, key) as admin:
            answer = await _post(admin)
            assert "idempotency-replayed" not in answer.headers
            texts.add(answer.json()["key"])
    async with _as(acme, weak) as admin:
        assert (await _post(admin)).status_code == 403
    async with _as(acme, foreign) as admin:
        assert (await _post(admin)).status_code == 404
        assert (await _post(admin, "/tenants/globex/keys")).json()["key"] not in texts

    assert len(texts) == 3
    assert (await _post(acme.admin, "/tenants/globex/keys")).json()["key"] not in texts, "another tenant's record"


async def test_of_many_at_once_one_is_done(acme: RunningGateway) -> None:
    """Ours: a client that sends again before the answer came gets the answer, or 409 with Retry-After (ADM-1)."""
    answers: list[httpx.Response] = []

    async def send() -> None:
        answers.append(await _post(acme.admin))

    async with anyio.create_task_group() as group:
        for _ in range(24):
            group.start_soon(send)

    made = [answer for answer in answers if answer.status_code == 201]
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len({answer.content for answer in made}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in made) == 1
    assert {(answer.status_code, answer.json()["code"]) for answer in refused} <= {(409, "idempotency.in_progress")}
    assert all("retry-after" in answer.headers for answer in refused)
    assert await _names(acme) == {"agent": 1}


async def test_a_refused_request_may_be_sent_again(acme: RunningGateway) -> None:
    """Ours: a request that changed nothing uses no key up (ADM-1)."""
    body = {**BODY, "profile": "late"}
    refused = await _post(acme.admin, body=body)
    (await acme.admin.post("/tenants/acme/profiles", json={"name": "late"})).raise_for_status()
    done = await _post(acme.admin, body=body)
    clash = [await _post(acme.admin, "/tenants/acme/profiles", key=key, body={"name": "late"}) for key in ("a", "a")]

    assert (refused.status_code, done.status_code) == (422, 201)
    assert "idempotency-replayed" not in done.headers
    assert [(answer.status_code, answer.json()["code"]) for answer in clash] == [(409, "name_taken")] * 2


@pytest.mark.parametrize("key", ["", "a, b", 'a"b', '"', "a\\b", "a b", "é", "x" * 256, '"a";b=1'])
async def test_a_key_has_a_documented_form(acme: RunningGateway, key: str) -> None:
    """Ours: a key that proxies may join or cut is refused, and nothing is done (ADM-1)."""
    answer = await acme.admin.post(KEYS, json=BODY, headers={b"idempotency-key": key.encode("latin-1")})

    assert (answer.status_code, answer.json()["code"]) == (400, "input.invalid")
    assert "Idempotency-Key" in answer.json()["detail"]
    twice = [(b"idempotency-key", b"a"), (b"idempotency-key", b"b")]
    assert (await acme.admin.post(KEYS, json=BODY, headers=twice)).status_code == 400
    assert await _names(acme) == {}


async def test_imports_are_repeated_with_their_reports(acme: RunningGateway) -> None:
    """Ours: a report is part of the answer that is kept; a slug makes its creation repeatable (ADM-1)."""
    body = {"name": "pets", "document": pets("https://pets.example")}
    first, again = [await _post(acme.admin, "/tenants/acme/sources", body=body) for _ in range(2)]

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    made = [await _post(acme.admin, "/tenants", body={"slug": "new"}) for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 409]
