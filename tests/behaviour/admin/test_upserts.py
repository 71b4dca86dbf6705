"""PUT by name: replaces what is there and creates what is not, with the checks and limits of POST."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource

URL = "https://pets.example"
TEXT = {"kind": "template", "text": "x", "mimeType": "text/plain"}
ROOT = "/tenants/acme"
URI, URI_TEMPLATE = "docs://a%20b/x?y=z", "docs://rows/{id}"
BODIES: dict[str, dict[str, Any]] = {
    "sources/pets": {"document": pets(URL)},
    "tools/say": static_tool("say"),
    "prompts/review": text_prompt("review"),
    f"resources?uri={quote(URI, safe='')}": text_resource(URI),
    f"resource-templates?uri={quote(URI_TEMPLATE, safe='')}": template(URI_TEMPLATE, TEXT),
    "live-sources/laptop": {"kind": "agent"},
    "profiles/reading": {"include": [{"safety": ["safe"]}]},
    "credentials/bank": {"place": "bearer", "value": "v", "origins": [URL]},
}

UNCHANGED = {one for one in BODIES if not one.startswith("credentials/")}
"""Objects of declared kinds, of which a PUT without a change leaves version and trail as they are."""


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await gateway.create_tenant("acme")
    return gateway


async def _put(gateway: RunningGateway, place: str, body: object, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await gateway.admin.put(f"{ROOT}/{place}", json=body, headers=named)


async def _actions(gateway: RunningGateway) -> list[str]:
    entries = (await gateway.admin.get(f"{ROOT}/audit", params={"limit": 200})).json()["items"]
    return [entry["action"] for entry in entries[::-1] if not entry["action"].startswith("tenant.")]


async def test_a_put_creates_and_then_replaces(acme: RunningGateway) -> None:
    """RFC 9110 9.3.4: 201 with the place of what was made, then 200; the conditions hold both ways (ADM-1)."""
    for place, body in BODIES.items():
        before = len(await _actions(acme))
        gone = await _put(acme, place, body, if_match="*")
        assert gone.status_code == 404
        made = await _put(acme, place, body, if_none_match="*")
        assert made.status_code == 201, made.text
        shown = await acme.http.get(made.headers["location"], headers=acme.admin.headers)
        assert (shown.status_code, shown.headers["etag"]) == (200, made.headers["etag"])
        assert shown.json()["id"] == made.json()["id"]

        refused = await _put(acme, place, body, if_none_match="*")
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
        replaced = await _put(acme, place, body)
        assert (replaced.status_code, replaced.json()["id"]) == (200, made.json()["id"])
        assert "location" not in replaced.headers
        is_same = place in UNCHANGED
        assert (await _put(acme, place, body, if_match=made.headers["etag"])).status_code == (200 if is_same else 412)
        assert (await _put(acme, place, body, if_match=replaced.headers["etag"])).status_code == 200
        verbs = [action.rpartition(".")[2] for action in (await _actions(acme))[before:]]
        assert verbs == ["create", *([] if is_same else ["update", "update"])]
        weird = await _put(acme, place, body, if_none_match='"x"')
        assert (weird.status_code, "must be *" in weird.json()["detail"]) == (400, True)


async def test_of_puts_at_once_one_creates_and_the_others_replace(acme: RunningGateway) -> None:
    """Ours: none is lost or refused for the race, and `If-None-Match: *` lets exactly one through (ADM-1, PRG-4)."""
    for place, body in BODIES.items():
        before, found = len(await _actions(acme)), await _put_at_once(acme, place, [body] * 4)
        assert found[201] == 1
        assert found.keys() <= {201, 200, 409}, found  # 409: changed at the same time, as with two PUTs of old
        actions = (await _actions(acme))[before:]
        assert actions.count(actions[0]) == 1
    bodies: list[object] = [{"place": "bearer", "value": name, "origins": [URL]} for name in ("a", "b", "c")]
    assert await _put_at_once(acme, "credentials/race", bodies, if_none_match="*") == {201: 1, 412: 2}


async def _put_at_once(gateway: RunningGateway, place: str, bodies: Sequence[object], **headers: str) -> Counter[int]:
    """Number of responses with each status."""
    statuses: Counter[int] = Counter()

    async def write(body: object) -> None:
        statuses[(await _put(gateway, place, body, **headers)).status_code] += 1

    async with anyio.create_task_group() as group:
        for body in bodies:
            group.start_soon(write, body)
    return statuses


async def test_a_name_in_the_body_is_the_one_in_the_path(acme: RunningGateway) -> None:
    """Ours: nothing is created under another name than the path's; one that is there is renamed as before (ADM-1)."""
    refused = await _put(acme, "tools/say", static_tool("tell"))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/definition/name")
    refused = await _put(acme, "resources?uri=docs://a", text_resource("docs://b"))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/definition/uri")
    assert (await _put(acme, "sources/pets", {"name": "zoo", "document": pets(URL)})).status_code == 400
    made = await add(acme, "acme", "tools", static_tool("say"))
    renamed = await _put(acme, "tools/say", static_tool("tell"))
    assert (renamed.json()["id"], renamed.json()["name"]) == (made["id"], "tell")
    assert len((await acme.admin.get(f"{ROOT}/tools")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("noun", "prefix"),
    [("sources", "src"), ("tools", "tol"), ("prompts", "pro"), ("resources", "res"), ("credentials", "crd")],
)
async def test_an_id_that_is_gone_creates_nothing(acme: RunningGateway, noun: str, prefix: str) -> None:
    """Ours: a replacement by id does not make another object of that name after its deletion (ADM-1)."""
    gone = f"{prefix}_{'0' * 20}"
    body = next(body for place, body in BODIES.items() if place.startswith(noun))
    answers = [await _put(acme, f"{noun}/{gone}", body)]
    if noun == "tools":
        answers.append(await _put(acme, f"{noun}/{gone}", static_tool(gone)))
    assert {answer.status_code for answer in answers} == {404}
    assert await _actions(acme) == []


async def test_a_creating_put_has_the_refusals_of_post(acme: RunningGateway) -> None:
    """Ours: names, conflicts and limits are those of POST, and nothing is stored (ADM-1, PRG-4, TEN-3)."""
    assert (await _put(acme, "sources/-x", BODIES["sources/pets"])).status_code == 404
    assert (await _put(acme, "profiles/Not_A_Label", {})).status_code == 404
    assert (await _put(acme, "profiles/hooks", {})).status_code == 409
    assert (await _put(acme, "profiles/default", {})).status_code == 409
    assert (await _put(acme, "tools/x", static_tool("x") | {"handler": {"kind": "none"}})).status_code == 422
    assert await _actions(acme) == []
    assert (await _put(acme, "sources/pets", BODIES["sources/pets"])).status_code == 201
    clash = await _put(acme, "sources/other", BODIES["sources/pets"])
    assert (clash.status_code, clash.json()["code"]) == (409, "name_taken")
    assert clash.json()["conflicts"][0]["owner"] == "source:pets"
    imported = (await acme.admin.get(f"{ROOT}/tools")).json()["items"]
    taken = await _put(acme, f"tools/{imported[0]['name']}", static_tool(imported[0]["name"]))
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    only = await _put(acme, f"tools/{imported[0]['name']}", static_tool(imported[0]["name"]), if_none_match="*")
    assert only.status_code == 412

    limits = {"limits": {"primitives": len(imported) + 1}}
    (await acme.admin.patch(f"{ROOT}/policy", json=limits)).raise_for_status()
    assert (await _put(acme, "tools/say", static_tool("say"))).status_code == 201
    full = await _put(acme, "tools/more", static_tool("more"))
    assert (full.status_code, "primitives" in full.json()["detail"]) == (429, True)
    assert (await _put(acme, "tools/say", static_tool("say", "again"))).status_code == 200
    tried = await _put(acme, "sources/dry", {"document": pets(URL), "prefix": "dry_", "dry_run": True})
    assert tried.status_code == 429


async def test_a_dry_run_of_a_source_that_is_not_there_stores_nothing(acme: RunningGateway) -> None:
    """Ours: a dry run reports with 200, wherever it would lead (ADM-1, OAS-3)."""
    tried = await _put(acme, "sources/pets", {"document": pets(URL), "dry_run": True})
    assert (tried.status_code, tried.json()["dry_run"], "location" in tried.headers) == (200, True, False)
    assert (await acme.admin.get(f"{ROOT}/sources/pets")).status_code == 404


async def test_a_put_of_a_foreign_name_creates_an_own_object(acme: RunningGateway) -> None:
    """Ours: a name is looked for in the own tenant alone; the other's object is as before (TEN-1)."""
    await acme.create_tenant("other")
    key = await acme.create_key("other", "admin")
    theirs: dict[str, Any] = {}
    for place, body in BODIES.items():
        theirs[place] = (await _put(acme, place, body)).headers["etag"]
    for place, body in BODIES.items():
        headers = {"authorization": f"Bearer {key}"}
        made = await acme.http.put(f"/admin/v1/tenants/other/{place}", json=body, headers=headers)
        assert made.status_code == 201
        assert made.headers["location"].startswith("/admin/v1/tenants/other/")
        assert (await _put(acme, place, body, if_match=theirs[place])).status_code == 200
