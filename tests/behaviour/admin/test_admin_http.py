"""The admin API as HTTP: methods, types, sizes, paths, lists and their cursors."""

from collections.abc import AsyncIterator

import anyio
import pytest

from tests.support.documents import many, pets
from tests.support.gateway import RunningGateway


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await gateway.create_tenant("acme")
    return gateway


async def test_a_method_that_a_path_has_not_is_405_with_those_it_has(acme: RunningGateway) -> None:
    """RFC 9110: 405 names the methods that are allowed (ADM-1)."""
    answer = await acme.admin.put("/tenants", json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert answer.json()["status"] == 405
    assert (await acme.admin.delete("/openapi.json")).status_code == 405


@pytest.mark.parametrize("path", ["/", "/none", "/tenants/", "/tenants/acme/none", "/tenants/acme/keys/a%2Fb/c"])
async def test_a_path_that_is_none_is_a_problem_like_any_other(acme: RunningGateway, path: str) -> None:
    """Ours: an absent object is 404 with a problem document (ADM-1)."""
    answer = await acme.http.get(f"/admin/v1{path}", headers=acme.admin.headers)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/tenants/acme/tool", "/tenants/{t}/tools"),
        ("/tenants/acme/keys/x/revok", "/tenants/{t}/keys/{id}/revoke"),
        ("/tenants/", "/tenants"),
        ("/tenants/acme/" + "x" * 200, ""),
        ("/nothing/like/this", ""),
    ],
)
async def test_an_unknown_path_names_a_similar_one(acme: RunningGateway, path: str, near: str) -> None:
    """Ours: a slip in a path leads to the path that was meant (ADM-1)."""
    answer = await acme.http.get(f"/admin/v1{path}", headers=acme.admin.headers)

    reported = f"there is no such path; did you mean {near}?" if near else "there is no such path"
    assert answer.json()["detail"] == reported


async def test_the_type_of_a_problem_leads_to_its_explanation(acme: RunningGateway) -> None:
    """RFC 9457: the type is a link to documentation of the problem; it needs no credential (ADM-1)."""
    for refused in (await acme.admin.get("/tenants/none"), await acme.http.get("/none")):
        place, _, code = refused.json()["type"].partition("#")
        page = await acme.http.get(place)

        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f'<tr id="{code}">' in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (await acme.http.head(place)).content == b""
    assert (await acme.http.post(place)).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/tenants/%00",
        "/tenants/acme/keys/%00",
        "/tenants/acme/sources/a%0Ab",
        "/tenants/ten_%F0",
        "/tenants/ten_a%27%2C%20true%29%3B%20select%20set_config%28%27app.tenant%27%2C%20%27ten_b",
    ],
)
async def test_a_name_that_cannot_be_is_not_found(acme: RunningGateway, path: str) -> None:
    """Ours: hostile names in paths never reach the database (ADM-1)."""
    assert (await acme.admin.get(path)).status_code == 404


async def test_head_answers_like_get_without_a_body(acme: RunningGateway) -> None:
    """RFC 9110: HEAD is GET without content (ADM-1)."""
    answer = await acme.admin.head("/tenants/acme")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["etag"] == (await acme.admin.get("/tenants/acme")).headers["etag"]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=UTF-8", 201),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
async def test_a_body_must_declare_json(acme: RunningGateway, content_type: str, status: int) -> None:
    """Ours: only application/json is read, so no browser form can write (ADM-1)."""
    headers = {"content-type": content_type} if content_type else {}
    answer = await acme.admin.post("/tenants", content=b'{"slug":"new"}', headers=headers)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"slug":"a","slug":"b"}',
        b'{"slug":NaN}',
        b"\xff",
        b'{"slug":"\\ud800"}',
        b'{"a":' * 100 + b"1" + b"}" * 100,
    ],
)
async def test_json_that_readers_could_understand_differently_is_refused(acme: RunningGateway, raw: bytes) -> None:
    """Ours: malformed, doubled, too deep or non-UTF-8 bodies are problems and store nothing (CAL-5)."""
    answer = await acme.admin.post("/tenants", content=raw, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "input.body_invalid")
    assert len((await acme.admin.get("/tenants")).json()["items"]) == 1


async def test_a_body_beyond_its_limit_is_413_also_when_its_length_is_not_declared(acme: RunningGateway) -> None:
    """Ours: 1 MiB, 32 MiB for documents, counted as it arrives (ADM-1)."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 2**19

    answer = await acme.admin.post("/tenants", content=chunks(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    document = {**many("https://a.example", 3), "x-note": "x" * 2**21}
    await acme.import_document("acme", document)


async def test_a_list_is_read_in_parts_while_it_changes(acme: RunningGateway) -> None:
    """Ours: cursors are keyset: every item that stays is seen exactly once (ADM-1)."""
    await acme.import_document("acme", many("https://a.example", 25))
    seen: list[str] = []
    cursor = None
    while True:
        query = {"limit": "10", **({"cursor": cursor} if cursor else {})}
        page = (await acme.admin.get("/tenants/acme/tools", params=query)).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        await acme.import_document("acme", pets("https://b.example"), name=f"a{len(seen)}", prefix=f"a{len(seen)}")
    assert seen == [f"op_{number:04}" for number in range(25)]


@pytest.mark.parametrize("noun", ["keys", "sources", "audit"])
async def test_every_list_has_parts(acme: RunningGateway, noun: str) -> None:
    """Ours: limit and cursor work on every list (ADM-1)."""
    for number in range(3):
        await acme.create_key("acme")
        await acme.import_document("acme", many("https://a.example", 1), name=f"s{number}", prefix=f"s{number}")
    whole = (await acme.admin.get(f"/tenants/acme/{noun}")).json()["items"]
    parts: list[object] = []
    path = f"/tenants/acme/{noun}?limit=2"
    answer = (await acme.admin.get(path)).json()
    parts += answer["items"]
    while answer["next_cursor"]:
        answer = (await acme.admin.get(path, params={"limit": "2", "cursor": answer["next_cursor"]})).json()
        parts += answer["items"]
    assert parts == whole
    assert len(whole) >= 3


@pytest.mark.parametrize(
    ("query", "pointer", "reason"),
    [
        ("limit=0", "?limit", "greater than or equal to 1"),
        ("limit=201", "?limit", "less than or equal to 200"),
        ("limit=1&limit=2", "?limit", "twice"),
        ("cursor=x", "?cursor", "next_cursor"),
        ("page=2", "?page", "unknown parameter; allowed: limit, cursor"),
    ],
)
async def test_a_refused_query_names_the_place(acme: RunningGateway, query: str, pointer: str, reason: str) -> None:
    """RFC 9457: the problem points to what is wrong (ADM-1)."""
    answer = await acme.admin.get(f"/tenants?{query}")
    [fault] = answer.json()["errors"]
    assert (answer.status_code, fault["pointer"]) == (400, pointer)
    assert reason in fault["reason"]


async def test_a_cursor_is_good_for_its_own_list_and_tenant_only(acme: RunningGateway) -> None:
    """Ours: a cursor that was not issued for this list of this tenant is refused (RES-3)."""
    await acme.create_tenant("other")
    for slug in ("acme", "other"):
        await acme.create_key(slug)
        await acme.create_key(slug)
    cursor = (await acme.admin.get("/tenants/acme/keys?limit=1")).json()["next_cursor"]
    tenants = (await acme.admin.get("/tenants?limit=1")).json()["next_cursor"]
    for path, used in (
        ("/tenants/other/keys", cursor),
        ("/tenants/acme/sources", cursor),
        ("/tenants", cursor),
        ("/tenants/acme/keys", tenants),
        ("/tenants/acme/keys", cursor[:-1] + ("A" if cursor[-1] != "A" else "B")),
        ("/tenants/acme/keys", "☃"),
    ):
        answer = await acme.admin.get(path, params={"cursor": used})
        assert (answer.status_code, answer.json()["code"]) == (400, "input.cursor_invalid"), (path, used)


async def test_if_match_lets_exactly_one_of_two_writers_through(acme: RunningGateway) -> None:
    """RFC 9110: of two writers that read the same version, the second is refused (412) (ADM-1)."""
    tag = (await acme.admin.get("/tenants/acme/policy")).headers["etag"]
    statuses: list[int] = []

    async def write(burst: int) -> None:
        body = {"limits": {"burst": burst}}
        answer = await acme.admin.put("/tenants/acme/policy", json=body, headers={"if-match": tag})
        statuses.append(answer.status_code)

    async with anyio.create_task_group() as group:
        group.start_soon(write, 5)
        group.start_soon(write, 6)
    assert sorted(statuses) == [200, 412]


async def test_the_operator_sets_the_private_upstreams_of_a_tenant(acme: RunningGateway) -> None:
    """Ours: the whole list by PUT, in one spelling, with a version; the trail names the change (ISO-5, ADM-1)."""
    place, entries = "/tenants/acme/egress", ["Billing.internal:8443", "[fd00:0::5]:80"]
    empty = await acme.admin.get(place)
    stored = await acme.admin.put(place, json={"allow": entries}, headers={"if-match": empty.headers["etag"]})
    late = await acme.admin.put(place, json={"allow": []}, headers={"if-match": empty.headers["etag"]})
    bodies: list[dict[str, object]] = [
        {"allow": ["ok.internal:1", "*:80"]},
        {"allow": None},
        {"allow": ["a:1"] * 101},
        {"deny": []},
    ]
    broken = [await acme.admin.put(place, json=body) for body in bodies]

    assert (empty.status_code, empty.json()) == (200, {"allow": []})
    assert (stored.status_code, stored.json()) == (200, {"allow": ["[fd00::5]:80", "billing.internal:8443"]})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert [answer.status_code for answer in broken] == [400] * 4
    assert broken[0].json()["errors"][0]["pointer"] == "/allow/1"
    shown = await acme.admin.get(place)
    assert (shown.json(), shown.headers["etag"]) == (stored.json(), stored.headers["etag"])
    (entry,) = (await acme.admin.get("/tenants/acme/audit", params={"limit": 1})).json()["items"]
    assert (entry["principal"], entry["action"]) == ("operator", "egress.update")
    assert entry["detail"]["after"] == stored.json()


async def test_a_revoked_key_is_refused_at_once_where_it_was_revoked(acme: RunningGateway) -> None:
    """Ours: the replica that ends a key does not know it any more (TEN-2)."""
    key = await acme.create_key("acme", "admin")
    bearer = {"authorization": f"Bearer {key}"}
    assert (await acme.admin.get("/tenants/acme", headers=bearer)).status_code == 200
    (listed,) = (await acme.admin.get("/tenants/acme/keys")).json()["items"]
    await acme.admin.post(f"/tenants/acme/keys/{listed['id']}/revoke")
    assert (await acme.admin.get("/tenants/acme", headers=bearer)).status_code == 401


async def test_respond_async_is_answered_at_once(acme: RunningGateway) -> None:
    """RFC 7240: `respond-async` is a preference that may be passed over (ADM-1)."""
    body = {"name": "pets", "document": pets("https://a.example")}
    answer = await acme.admin.post("/tenants/acme/sources", json=body, headers={"prefer": "respond-async"})
    assert answer.status_code == 201
