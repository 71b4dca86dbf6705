"""The pages of approvals as a browser's requests: who may see and decide, and what a page holds."""

import re
from typing import Any

import anyio
import httpx
import pytest

from gateway.domain.calls.approvals import ApprovalState, RequestShown
from tests.behaviour.console.conftest import ConsoleBench
from tests.support.gateway import running_gateway
from tests.support.servers import TestServers, execute
from tests.support.serving import http_client

SCRIPT = "<script>alert(1)</script>"


def fields(page: str) -> dict[str, str]:
    """The hidden fields of the form that decides."""
    form = page[page.index('id="decision"') :]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


async def decide(person: httpx.AsyncClient, path: str, verdict: str, **more: str) -> httpx.Response:
    """Open the page, and send its form."""
    page = await person.get(path)
    return await person.post(path, data={**fields(page.text), "verdict": verdict, "comment": "", **more})


async def test_an_approval_is_read_and_approved(bench: ConsoleBench) -> None:
    """Ours: the page shows request, warnings, requester and expiry; the decision is stored with its comment (SAF-3)."""
    approval = await bench.ask()
    path = f"/approvals/{approval.id}"
    async with bench.person() as person:
        before = await person.get(path)
        assert (before.status_code, before.headers["location"]) == (303, f"/approvals/sign-in?next={path}")
        form = await person.get(before.headers["location"])
        assert f'value="{path}"' in form.text
        entered = await person.post("/approvals/sign-in", data={"key": bench.key, "next": path})
        assert (entered.status_code, entered.headers["location"]) == (303, path)
        page = await person.get(path)
        for shown in ("DELETE https://pets.example/pets/7?force=true", "X-Reason: cleaning up", "Deletes /pets/7."):
            assert shown in page.text
        assert page.text.count("&#34;name&#34;") == 2, "a repeated member is shown as often as it is sent"
        assert "agent (key:key_agent)" in page.text
        done = await decide(person, path, "approve", comment=" fine\r\n by me ")
        assert (done.status_code, done.headers["location"]) == (303, path)
        after = await person.get(path)

    stored = await bench.now(approval.id)
    assert (stored.state, stored.comment, stored.decider_subject) == (ApprovalState.APPROVED, "fine by me", "Ada")
    assert "Approved by Ada" in after.text
    assert "<textarea" not in after.text


async def test_a_second_decision_reads_the_first(bench: ConsoleBench) -> None:
    """Ours: a double click, and two persons at a time: one decision is stored, the others read it (SAF-3)."""
    approval = await bench.ask()
    path = f"/approvals/{approval.id}"
    bob = await bench.gateway.create_key("acme", "approve", subject="Bob")
    answers: list[httpx.Response] = []
    async with bench.person() as ada, bench.person() as other:
        await bench.signed_in(ada)
        await bench.signed_in(other, bob)
        page = fields((await ada.get(path)).text)
        second = fields((await other.get(path)).text)

        async def send(person: httpx.AsyncClient, form: dict[str, str], verdict: str) -> None:
            answers.append(await person.post(path, data={**form, "verdict": verdict, "comment": ""}))

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(send, ada, page, "approve")
                tasks.start_soon(send, other, second, "deny")

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses[0] == 303
    assert set(statuses[1:]) <= {409, 412}
    stored = await bench.now(approval.id)
    for answer in answers:
        if answer.status_code != 303:
            assert f"by {stored.decider_subject}" in answer.text
            assert 'role="alert"' in answer.text


async def test_the_requester_has_no_buttons(bench: ConsoleBench) -> None:
    """Ours: the subject decides, not the key; a form sent all the same is refused (SAF-3)."""
    approval = await bench.ask(subject="Ada")
    other = await bench.ask()
    path = f"/approvals/{approval.id}"
    async with bench.person() as person:
        await bench.signed_in(person)
        page = await person.get(path)
        assert "another person must decide" in page.text
        assert "<button name" not in page.text
        form = fields((await person.get(f"/approvals/{other.id}")).text)
        form["tag"] = f"{approval.id}.1"
        forced = await person.post(path, data={**form, "verdict": "approve", "comment": ""})

    assert forced.status_code == 403
    assert (await bench.now(approval.id)).state is ApprovalState.PENDING


async def test_foreign_and_unknown_approvals_look_alike(bench: ConsoleBench) -> None:
    """Ours: the tenant is the key's, whatever the id in the URL (TEN-1)."""
    await bench.gateway.create_tenant("other")
    stranger = await bench.gateway.create_key("other", "approve", subject="Eve")
    approval = await bench.ask()
    async with bench.person() as person:
        await bench.signed_in(person, stranger)
        answers = [
            await person.get(f"/approvals/{named}")
            for named in (approval.id, "apr_" + "0" * 20, "apr_x", "%3Cscript%3E")
        ]
        listed = await person.get("/approvals")

    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1
    assert approval.id not in listed.text


@pytest.mark.parametrize("scopes", [("mcp",), ("admin",), ("audit",), ("provide",)])
async def test_only_keys_that_approve_sign_in(bench: ConsoleBench, scopes: tuple[str, ...]) -> None:
    """Ours: other scopes, wrong keys and the operator's get no session (SAF-3)."""
    key = await bench.gateway.create_key("acme", *scopes)
    async with bench.person() as person:
        refused = await bench.signed_in(person, key)
        operator = await bench.signed_in(person, "operator-key-of-the-tests-0123456789")
        wrong = await bench.signed_in(person, "mcpg_live_x")
        assert (await person.get("/approvals")).status_code == 303

    assert (refused.status_code, operator.status_code, wrong.status_code) == (403, 403, 401)
    for answer in (refused, operator, wrong):
        assert "set-cookie" not in answer.headers
        assert 'role="alert"' in answer.text
        assert key not in answer.text


async def test_failed_sign_ins_are_limited(servers: TestServers) -> None:
    """Ours: the limit of failed authentications counts them, and a valid key still signs in (ISO-3)."""
    wrong = {"key": "mcpg_live_" + "0" * 20 + "_" + "A" * 43 + "00000000"}
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.own_redis(), auth_failure_rate=0.05) as gateway:
            await gateway.create_tenant("acme")
            key = await gateway.create_key("acme", "approve")
            headers = {"origin": gateway.url}
            async with http_client(base_url=gateway.url, headers=headers, timeout=30) as person:
                first, second = [await person.post("/approvals/sign-in", data=wrong) for _ in range(2)]
                entered = await person.post("/approvals/sign-in", data={"key": key})

    assert (first.status_code, first.headers["www-authenticate"]) == (401, "Bearer")
    assert (second.status_code, int(second.headers["retry-after"]) > 0) == (429, True)
    assert "too many failed authentications" in second.text
    assert "set-cookie" not in second.headers
    assert entered.status_code == 303


@pytest.mark.parametrize("how", ["revoke", "rotate"])
async def test_an_ended_key_ends_its_sessions(bench: ConsoleBench, how: str) -> None:
    """Ours: the next request after a revocation or rotation signs in again (ISO-2)."""
    made = (await bench.gateway.admin.post("/tenants/acme/keys", json={"name": "k", "scopes": ["approve"]})).json()
    approval = await bench.ask()
    path = f"/approvals/{approval.id}"
    async with bench.person() as person:
        await bench.signed_in(person, made["key"])
        form = fields((await person.get(path)).text)
        (await bench.gateway.admin.post(f"/tenants/acme/keys/{made['id']}/{how}")).raise_for_status()
        late = await person.post(path, data={**form, "verdict": "approve", "comment": ""})
        assert (late.status_code, late.headers["location"]) == (303, f"/approvals/sign-in?next={path}")
        assert (await person.get("/approvals")).status_code == 303

    assert (await bench.now(approval.id)).state is ApprovalState.PENDING


async def test_signing_out_ends_the_session(bench: ConsoleBench) -> None:
    """Ours: and it takes the token of the session (SAF-3)."""
    async with bench.person() as person:
        await bench.signed_in(person)
        page = (await person.get("/approvals")).text
        token = re.findall(r'name="token" value="(\w+)"', page)[0]
        assert (await person.post("/approvals/sign-out", data={"token": "0" * 64})).status_code == 403
        assert (await person.get("/approvals")).status_code == 200
        copied = {"cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items())}
        left = await person.post("/approvals/sign-out", data={"token": token})
        assert left.headers["location"].startswith("/approvals/sign-in")
        assert (await person.get("/approvals")).status_code == 303
        assert (await person.get("/approvals", headers=copied)).status_code == 303, "a copied cookie is of no use"
        await bench.signed_in(person)
        assert (await person.get("/approvals")).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 403),
        ("null", 403),
        ("https://evil.example", 403),
        ("http://127.0.0.1:1", 403),
    ],
)
async def test_forms_of_other_pages_are_refused(bench: ConsoleBench, origin: str | None, status: int) -> None:
    """Ours: a decision comes from a page of this gateway; SameSite is not the only wall (SAF-3)."""
    approval = await bench.ask()
    path = f"/approvals/{approval.id}"
    async with bench.person() as person:
        await bench.signed_in(person)
        form = {**fields((await person.get(path)).text), "verdict": "approve", "comment": ""}
        del person.headers["origin"]
        headers = {} if origin is None else {"origin": origin}
        refused = await person.post(path, data=form, headers=headers)
        entered = await person.post("/approvals/sign-in", data={"key": bench.key}, headers=headers)

    assert (refused.status_code, entered.status_code) == (status, status)
    assert (await bench.now(approval.id)).state is ApprovalState.PENDING


@pytest.mark.parametrize(
    "changed",
    [
        {"token": "0" * 64},
        {"token": "é"},
        {"verdict": "maybe"},
        {"verdict": ""},
        {"comment": "x" * 1001},
        {"comment": "\u202eevil"},
        {"tag": "x.1"},
        {"more": "y" * 20_000},
    ],
)
async def test_a_form_that_is_not_the_pages_stores_nothing(bench: ConsoleBench, changed: dict[str, str]) -> None:
    """Ours: token, verdict, comment, version and size are checked (SAF-3)."""
    approval = await bench.ask()
    path = f"/approvals/{approval.id}"
    async with bench.person() as person:
        await bench.signed_in(person)
        answer = (
            await decide(person, path, "approve", **changed)
            if "verdict" not in changed
            else await person.post(path, data={**fields((await person.get(path)).text), "comment": "", **changed})
        )

    assert answer.status_code in {400, 403, 409, 412, 413}, answer.text
    assert (await bench.now(approval.id)).state is ApprovalState.PENDING


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"a=%ff", "application/x-www-form-urlencoded"),
        (b"a=1&a=2", "application/x-www-form-urlencoded"),
        (b"&".join(b"f%d=1" % n for n in range(100)), "application/x-www-form-urlencoded"),
        (b'{"key":"x"}', "application/json"),
        (b"key=x", "text/plain"),
    ],
)
async def test_a_body_that_is_no_form_is_refused(bench: ConsoleBench, body: bytes, kind: str) -> None:
    """Ours: with a page, and without an error of the gateway (SAF-3)."""
    async with bench.person() as person:
        answer = await person.post("/approvals/sign-in", content=body, headers={"content-type": kind})
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("cookie", ["x", "gAAAAA", "é".encode().hex(), "A" * 3000, ""])
async def test_a_forged_cookie_is_no_session(bench: ConsoleBench, cookie: str) -> None:
    """Ours: cookies are sealed; what does not open is ignored (SAF-3)."""
    for name in ("gateway-session", "__Host-gateway-session"):
        async with bench.person() as person:
            answer = await person.get("/approvals", headers={"cookie": f"{name}={cookie}"})
        assert answer.status_code == 303


async def test_a_cookie_without_tls_is_none_of_a_secure_page(bench: ConsoleBench) -> None:
    """Ours: the name with the prefix `__Host-` is for sessions that began over TLS, the other for others (SAF-3)."""
    async with bench.person() as person:
        plain = await bench.signed_in(person)
        value = plain.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert (await person.get("/approvals")).status_code == 200
        person.cookies.clear()
        forged = await person.get("/approvals", headers={"cookie": f"__Host-gateway-session={value}"})
        origin = bench.url.replace("http://", "https://")
        over_tls = await person.post("/approvals/sign-in", data={"key": bench.key}, headers={"origin": origin})

    assert forged.status_code == 303
    assert re.fullmatch(
        r"gateway-session=[\w=-]+; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict", plain.headers["set-cookie"]
    )
    assert re.fullmatch(
        r"__Host-gateway-session=[\w=-]+; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure",
        over_tls.headers["set-cookie"],
    )


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/approvals/../x", "/admin", "javascript:1"]
)
async def test_a_sign_in_leads_to_these_pages_only(bench: ConsoleBench, target: str) -> None:
    """Ours: no link to the sign-in leads elsewhere (SAF-3)."""
    async with bench.person() as person:
        form = await person.get("/approvals/sign-in", params={"next": target})
        entered = await person.post("/approvals/sign-in", data={"key": bench.key, "next": target})
    assert target not in form.text
    assert entered.headers["location"] == "/approvals"


async def test_every_answer_forbids_scripts_frames_and_caches(bench: ConsoleBench) -> None:
    """Ours: pages, refusals and redirects have the same headers (SAF-3)."""
    approval = await bench.ask()
    async with bench.person() as person:
        answers = [await person.get("/approvals"), await person.get("/approvals/sign-in")]
        answers.append(await bench.signed_in(person))
        answers += [await person.get(path) for path in ("/approvals", f"/approvals/{approval.id}", "/approvals/none")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; form-action 'self'")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "<script" not in answer.text
        assert " on" not in " ".join(re.findall(r"<[^>]*>", answer.text)), "no handler attributes"


HOSTILE: Any = [
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "</pre></main><form action=https://evil.example>",
    "\u202egnp.exe\u2066\u2069",
    "{0.__class__} {title} %s",
    "a\r\nSet-Cookie: x=1",
    "\x1b[31m\x7f",
    "ignore\u200b this \U000e0041\U000e0042",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_texts_stay_texts(bench: ConsoleBench, text: str) -> None:
    """Ours: wherever a text of a caller is shown, it is escaped (SAF-3)."""
    request = RequestShown(method=text, url=text, headers=((text, text),), body=f'{{"a": "{text}"}}')
    earlier = await bench.ask(
        request, tool=text, state=ApprovalState.DONE, decided_by="key:key_b", decider_subject=text, comment=text
    )
    moved = f"update approvals set decided_at = now(), ended_at = now() where id = '{earlier.id}'"
    await execute(bench.stand.database.superuser_url, moved)
    approval = await bench.ask(
        RequestShown(method=text, url=text + "2", headers=((text, text),), body=text),
        tool=text,
        subject=text,
        requester=text,
        profile=text,
        warnings=(text,),
    )
    async with bench.person() as person:
        await bench.signed_in(person)
        for path in ("/approvals", f"/approvals/{approval.id}", f"/approvals/{earlier.id}"):
            page = await person.get(path)
            assert page.status_code == 200
            for raw in ("<script", "<img", "<form action=https", *"\u202e\u2066\u200b\x7f\x1b\U000e0041"):
                assert raw not in page.text
            assert page.text.count("</main>") == 1


async def test_many_calls_that_wait_hide_no_older_one(bench: ConsoleBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a flood of one caller leaves the calls of others within reach; the place is the tenant's (SAF-3, TEN-1)."""
    monkeypatch.setattr("gateway.web.console.responder.MAX_WAITING", 2)
    asked = [(await bench.ask(subject=f"agent {number}")).id for number in range(5)]
    async with bench.person() as person:
        await bench.signed_in(person)
        path, seen = "/approvals", list[str]()
        while path:
            page = (await person.get(path)).text
            waiting = page[: page.index('id="decided"')]
            seen += re.findall(r'href="/approvals/(apr_\w+)"', waiting)
            path = next(iter(re.findall(r'href="(/approvals\?after=apr_\w+)"', waiting)), "")
        assert seen == asked[::-1]
        for wrong in ("apr_" + "0" * 20, "x", "\x00", SCRIPT):
            answer = await person.get("/approvals", params={"after": wrong})
            assert (answer.status_code, SCRIPT in answer.text) == (404, False)


async def test_a_line_of_a_megabyte_is_cut(bench: ConsoleBench) -> None:
    """Ours: and the page states it; many lines are not compared (SAF-3)."""
    await bench.ask(RequestShown(method="POST", url="https://x.example", body="\n".join("ab" * 2000)))
    moved = "update approvals set state = 'done', decided_by = 'b', decided_at = now(), ended_at = now()"
    await execute(bench.stand.database.superuser_url, moved)
    approval = await bench.ask(RequestShown(method="POST", url="https://x.example", body="x" * 1_000_000 + "END"))
    async with bench.person() as person:
        await bench.signed_in(person)
        page = await person.get(f"/approvals/{approval.id}")
    assert len(page.content) < 100_000
    assert "1000003 characters in all" in page.text
    assert "too long to compare" in page.text


async def test_the_difference_is_to_the_last_approved_call(bench: ConsoleBench) -> None:
    """Ours: denied calls and calls of other tools are no measure (SAF-3)."""
    for state, tool, name in (("done", "delete_pet", "Old"), ("denied", "delete_pet", "No"), ("done", "other", "Else")):
        made = await bench.ask(
            RequestShown(method="POST", url="https://pets.example/pets", body=f'{{"name":"{name}","age":1}}'), tool=tool
        )
        moved = f"state = '{state}', decided_by = 'b', decided_at = now(), ended_at = now() where id = '{made.id}'"
        await execute(bench.stand.database.superuser_url, f"update approvals set {moved}")
    approval = await bench.ask(
        RequestShown(method="POST", url="https://pets.example/pets", body='{"name":"New","age":1}')
    )
    async with bench.person() as person:
        await bench.signed_in(person)
        page = (await person.get(f"/approvals/{approval.id}")).text
    assert "<del>-   &#34;name&#34;: &#34;Old&#34;,</del>" in page
    assert "<ins>+   &#34;name&#34;: &#34;New&#34;,</ins>" in page
    assert "Else" not in page
    assert "&#34;No&#34;" not in page
