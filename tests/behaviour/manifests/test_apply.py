"""Application of manifests to a tenant: one transaction, and one revision and entry for each changed object."""

from typing import Any

import anyio
import pytest

from gateway.kinds.index import KINDS
from gateway.kinds.manifests import MANIFEST_KINDS, kind_in_manifests, name_in_manifests
from gateway.kinds.members import settable
from gateway.kinds.singletons import SINGLETONS
from tests.support.gateway import RunningGateway
from tests.support.manifests import (
    actions,
    apply,
    contains,
    document_of,
    entries_of,
    manifests_of_all,
    profile,
    send,
    tenant_with_tools,
)
from tests.support.servers import TestServers
from tests.support.stand import running_stand

ROOT = "/tenants/acme"


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await tenant_with_tools(gateway)
    return gateway


async def _revision(gateway: RunningGateway) -> int:
    tag = (await gateway.admin.get(ROOT)).headers["etag"]
    return int(tag.strip('"').rpartition(".")[2])


async def test_a_tenant_of_every_kind_is_applied_once(acme: RunningGateway) -> None:
    """Ours: every kind with every member is applied; the same again writes no entry and no revision (CFG-1)."""
    wanted, before = manifests_of_all(), await _revision(acme)
    done = await apply(acme, wanted, set="platform", commit="4f2a9c1", author="Ada <ada@example.com>")
    assert {one["action"] for one in done["objects"]} == {"create", "update"}
    assert [one["kind"] for one in done["objects"]] == [one["kind"] for one in wanted]
    entries = await entries_of(acme)
    assert (done["revision"], len(entries)) == (before + len(wanted), len(wanted))
    assert [one["detail"]["revision"] for one in entries] == list(range(before + 1, done["revision"] + 1))
    origin = {"set": "platform", "commit": "4f2a9c1", "author": "Ada <ada@example.com>"}
    assert all(one["detail"].items() >= origin.items() for one in entries)
    for one, sent in zip(done["objects"], wanted, strict=True):
        shown = await _show(acme, one)
        hidden = {each.name for each in settable(MANIFEST_KINDS[one["kind"]].of) if each.is_secret}
        given = {name: value for name, value in sent["members"].items() if value is not None and name not in hidden}
        odd = {name: value for name, value in given.items() if not contains(shown.get(name), value)}
        assert odd == {}
    again = await apply(acme, wanted, set="platform")
    assert {one["action"] for one in again["objects"]} == {"none"}
    assert (again["revision"], await entries_of(acme)) == (None, entries)
    assert [one["changes"] for one in again["objects"]] == [[]] * len(wanted)
    assert [one["drift"] for one in again["objects"]] == [False] * len(wanted)


async def _show(gateway: RunningGateway, applied: dict[str, Any]) -> dict[str, Any]:
    """The object as GET shows it."""
    paths = {
        **{kind_in_manifests(kind.name): f"{kind.plural}/{applied['id']}" for kind in KINDS},
        **{kind_in_manifests(kind.name): kind.path for kind in SINGLETONS},
    }
    answer = await gateway.admin.get(f"{ROOT}/{paths[applied['kind']]}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_a_dry_run_shows_the_result_of_an_application(acme: RunningGateway) -> None:
    """Ours: a dry run is the same transaction, rolled back: the same result, without ids and secrets (CFG-1)."""
    await apply(acme, [profile("readers")])
    wanted, before = [*manifests_of_all(), profile("extra")], await _revision(acme)
    tried = await apply(acme, wanted, dry_run=True)
    assert (await _revision(acme), await entries_of(acme)) == (before, (await entries_of(acme))[:1])
    assert (await acme.admin.get(f"{ROOT}/profiles/extra")).status_code == 404
    done = await apply(acme, wanted)
    is_hidden = {"id": None, "secret": None}
    assert [one | is_hidden for one in tried["objects"]] == [one | is_hidden for one in done["objects"]]
    assert tried["revision"] == done["revision"]
    assert {one["secret"] for one in tried["objects"]} == {None}
    assert {one["id"] for one in tried["objects"] if one["action"] == "create"} == {None}
    [readers] = [one for one in done["objects"] if one["name"] == "readers"]
    assert (readers["action"], readers["changes"][0]) == (
        "update",
        {"pointer": "/description", "before": "", "after": "What only reads.", "is_secret": False, "is_cut": False},
    )


async def test_secrets_of_new_objects_are_shown_once(acme: RunningGateway) -> None:
    """Ours: a generated secret is in the response and in its replay, and in no entry and no later response (CFG-1)."""
    body = {"objects": [{"kind": "webhook", "name": "cms"}]}
    answers = [await acme.admin.post(f"{ROOT}/apply", json=body, headers={"idempotency-key": "once"}) for _ in range(2)]
    assert answers[1].headers["idempotency-replayed"] == "true"
    [secret] = {answer.json()["objects"][0]["secret"] for answer in answers}
    assert secret.startswith("whsec_")
    again = await acme.admin.post(f"{ROOT}/apply", json=body)
    assert (again.json()["objects"][0]["secret"], secret in again.text) == (None, False)
    entries = await acme.admin.get(f"{ROOT}/audit", params={"limit": 200})
    assert secret not in entries.text


async def test_a_fault_in_the_middle_leaves_nothing(acme: RunningGateway) -> None:
    """Ours: all objects are applied or none; the fault has the place of its object (CFG-1)."""
    before = await _revision(acme)
    bad = {"kind": "watch", "name": "nothing://1", "members": {"url": "https://api.example/notes/1"}}
    refused = await send(acme, [profile("a"), bad, profile("b")])
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/objects/1/name")
    wrong = [profile("a", unknown=1), {"kind": "profiles", "name": "b"}, profile("No Name"), profile("c", include=1)]
    wrong += [{"kind": "profile"}, {"kind": "policy", "name": "x"}, profile("d", id="prf_1")]
    refused = await send(acme, wrong)
    assert refused.status_code == 400
    pointers = [fault["pointer"] for fault in refused.json()["errors"]]
    assert pointers == [
        "/objects/0/members/unknown",
        "/objects/1/kind",
        "/objects/2/name",
        "/objects/3/members/include",
        "/objects/4/name",
        "/objects/5/name",
        "/objects/6/members/id",
    ]
    taken = await send(acme, [profile("a"), profile("default"), profile("hooks")])
    assert (taken.status_code, taken.json()["errors"][0]["pointer"]) == (409, "/objects/1")
    assert (await _revision(acme), await entries_of(acme)) == (before, [])
    assert (await acme.admin.get(f"{ROOT}/profiles/a")).status_code == 404


async def test_applications_at_once_follow_one_another(acme: RunningGateway) -> None:
    """Ours: of applications at the same time, each is whole; the last one decides about all objects (CFG-1)."""
    texts = [f"Version {number}." for number in range(4)]
    results: list[dict[str, Any]] = []

    async def run(text: str) -> None:
        wanted = [profile(f"p{number}", description=text) for number in range(5)]
        while (answer := await send(acme, wanted)).status_code == 503:  # the tenant's share of connections is in use
            pass
        assert answer.status_code == 200, answer.text
        results.append(answer.json())

    async with anyio.create_task_group() as group:
        for text in texts:
            group.start_soon(run, text)
    shown = (await acme.admin.get(f"{ROOT}/profiles", params={"limit": 200})).json()["items"]
    assert len({one["description"] for one in shown if one["name"] != "default"}) == 1
    last = max(results, key=lambda one: one["revision"])
    assert sorted(one["action"] for result in results for one in result["objects"]) == ["create"] * 5 + ["update"] * 15
    assert last["revision"] - min(one["revision"] for one in results) == 15


async def test_a_plan_is_refused_when_its_objects_have_moved(acme: RunningGateway) -> None:
    """Ours: a plan names the versions of its objects; others may change meanwhile (CFG-2)."""
    await apply(acme, [profile("a"), profile("b")])
    wanted = [profile("a", description="New."), profile("new")]
    planned = await apply(acme, wanted, dry_run=True)
    expected = [{name: one[name] for name in ("kind", "name", "etag")} for one in planned["objects"]]
    await acme.admin.patch(f"{ROOT}/profiles/b", json={"description": "By hand."})
    await acme.admin.patch(f"{ROOT}/profiles/a", json={"description": "By hand."})
    await acme.admin.put(f"{ROOT}/profiles/new", json={})
    refused = await send(acme, wanted, expected=expected)
    assert refused.status_code == 412
    assert [fault["reason"] for fault in refused.json()["errors"]] == [
        "the profile a has changed",
        "the profile new was created",
    ]
    planned = await apply(acme, wanted, dry_run=True)
    expected = [{name: one[name] for name in ("kind", "name", "etag")} for one in planned["objects"]]
    await acme.admin.patch(f"{ROOT}/profiles/b", json={"description": "Again."})
    assert actions(await apply(acme, wanted, expected=expected)) == {"a": "update", "new": "none"}
    assert (await send(acme, wanted, expected=expected)).status_code == 412


async def test_a_plan_names_referenced_objects(acme: RunningGateway) -> None:
    """Ours: a singleton has a version in a plan too, such as the policy that decides about origins (CFG-2)."""
    policy = {"kind": "policy", "members": {"http_origins": ["https://api.example"]}}
    planned = await apply(acme, [policy], dry_run=True)
    [one] = planned["objects"]
    assert (one["name"], one["etag"]) == (None, (await acme.admin.get(f"{ROOT}/policy")).headers["etag"].strip('"'))
    expected = [{"kind": "policy", "etag": one["etag"]}]
    await apply(acme, [policy], expected=expected)
    assert (await send(acme, [policy], expected=expected)).status_code == 412


async def test_bounds_come_before_the_objects_that_they_bound(acme: RunningGateway) -> None:
    """Ours: a policy is applied before the objects whose origins it permits, wherever the request has it (CFG-1)."""
    endpoint = {"kind": "webhook-endpoint", "name": "a", "members": {"url": "https://b.example/hook"}}
    await apply(acme, [{"kind": "policy", "members": {"http_origins": ["https://a.example"]}}])
    assert (await send(acme, [endpoint])).status_code == 422
    policy = {"kind": "policy", "members": {"http_origins": ["https://b.example"]}}
    assert actions(await apply(acme, [endpoint, policy])) == {"a": "create", "policy": "update"}


async def test_the_schema_of_manifests_has_every_kind(acme: RunningGateway) -> None:
    """Ours: the published schema accepts what can be applied, and refuses unknown members (CFG-1)."""
    import jsonschema_rs  # noqa: PLC0415  # only this test needs it

    answer = await acme.admin.get("/schemas/manifest")
    assert "manifest" in (await acme.admin.get("/schemas")).json()["items"]
    validator = jsonschema_rs.Draft202012Validator(answer.json(), offline=True)
    for one in manifests_of_all():
        document = document_of(one)
        assert [error.message for error in validator.iter_errors(document)] == []
        assert not validator.is_valid({**document, "unknown": 1})
        assert not validator.is_valid({**document, "apiVersion": "gateway/v9"})
    names = {name_in_manifests(each.name) for kind in KINDS for each in settable(kind.of)}
    assert names <= {name for branch in answer.json()["$defs"].values() for name in branch.get("properties", {})}


async def test_secrets_of_a_body_are_shown_nowhere(servers: TestServers) -> None:
    """Ours: a secret part of a member is in no response, entry or refusal; a change of it is named (CFG-2)."""
    values = ("first-value-of-a-secret", "second-value-of-a-secret")

    def source(value: str, **more: object) -> dict[str, Any]:
        settings = {"argv": ["/bin/cat"], "env": {"TOKEN": value}, **more}
        members = {"kind": "command", "settings": settings, "enabled": False}
        return {"kind": "live-source", "name": "a", "members": members}

    async with running_stand(servers, upstreams=0, live_commands=True) as stand:
        gateway = stand.gateway
        await gateway.create_tenant("acme")
        answers = [await send(gateway, [source(values[0])], set="platform", dry_run=True)]
        answers += [await send(gateway, [source(value)], set="platform") for value in values]
        [changed] = answers[2].json()["objects"]
        hidden = {"pointer": "/settings", "before": None, "after": None, "is_secret": True, "is_cut": False}
        assert (changed["action"], changed["changes"]) == ("update", [hidden])
        answers.append(await send(gateway, [source(values[0], unknown=1)]))
        answers.append(await gateway.admin.get(f"{ROOT}/audit", params={"limit": 200}))
        assert [answer.status_code for answer in answers] == [200, 200, 200, 422, 200]
        assert [value for value in values for answer in answers if value in answer.text] == []
