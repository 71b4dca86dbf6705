"""Attacks on approvals by people: an agent that approves its own call, lost groups, forged forms, admins' roles."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from tests.support.authorization import Application
from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider, add_provider, new_issuer
from tests.support.primitives import add, static_tool
from tests.support.servers import TestDatabase, execute
from tests.support.serving import http_client
from tests.support.stand import Stand

LEADS = [{"role": "approve", "who": ["group:corp:leads"], "unless": ["subject:corp:eve"], "reason": "they answer"}]
ACCESS = "/tenants/acme/access"


@dataclass(slots=True)
class Office:
    """The tenant `acme`, in which Ada's agent has called a tool that needs an approval."""

    application: Application
    stack: AsyncExitStack
    token: str
    approval: str

    @property
    def gateway(self) -> RunningGateway:
        return self.application.gateway

    @property
    def page(self) -> str:
        return f"{self.gateway.url}/t/acme/approvals/{self.approval}"

    async def person(self, sub: str, *groups: str, slug: str = "acme") -> Application:
        """A browser in which a person has signed in."""
        http = await self.stack.enter_async_context(http_client(timeout=30))
        found = replace(self.application, http=http, slug=slug, claims={"sub": sub, "groups": list(groups)})
        page = await found.follow(await http.get(f"{self.gateway.url}/t/{slug}/sign-in"))
        assert f"corp:{sub}" in page.text, page.text
        return found

    async def decide(
        self, person: Application, verdict: str = "approve", *, headers: dict[str, str] | None = None, **fields: str
    ) -> httpx.Response:
        """Open the page, and send its form."""
        page = await person.http.get(self.page)
        return await self.send(person, {**decision_fields(page), "verdict": verdict, **fields}, headers)

    async def send(
        self, person: Application, form: dict[str, str], headers: dict[str, str] | None = None
    ) -> httpx.Response:
        own = {"origin": self.gateway.url}
        return await person.http.post(self.page, data=form, headers=own if headers is None else headers)

    async def state(self) -> dict[str, Any]:
        """The approval."""
        found: dict[str, Any] = (await self.gateway.admin.get(f"/tenants/acme/approvals/{self.approval}")).json()
        return found


def decision_fields(page: httpx.Response) -> dict[str, str]:
    """The fields of the form of the decision; the first form of the page is that of the sign-out."""
    _, _, form = page.text.rpartition("<form")
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


@pytest.fixture
async def office(application: Application) -> AsyncGenerator[Office]:
    """Ada is one of the leads, and so is her agent's token."""
    gateway = application.gateway
    await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "approve"})
    await add(gateway, "acme", "tools", {**static_tool("purge", "gone"), "safety": "dangerous"})
    assert (await gateway.admin.patch(ACCESS, json={"rules": [], "roles": LEADS})).status_code == 200
    application.provider.answer = {"refresh_token": "refresh of the provider"}
    application.claims = {"groups": ["leads"]}
    async with AsyncExitStack() as stack:
        token = (await application.tokens())["access_token"]
        office = Office(application, stack, token, "")
        await call(office)
        [waiting] = (await gateway.admin.get("/tenants/acme/approvals")).json()["items"]
        office.approval = waiting["id"]
        yield office


async def call(office: Office) -> dict[str, Any]:
    """The result of the agent's call."""
    params: dict[str, Any] = {"name": "purge", "arguments": {}}
    result: dict[str, Any] = (await office.gateway.rpc("acme", office.token, "tools/call", params)).json()["result"]
    return result


async def test_another_person_with_the_role_decides_in_the_browser(office: Office) -> None:
    """Ours: a sign-in and the role are enough; the call runs, and the trail names the person (IDN-4, SAF-3)."""
    bob = await office.person("bob", "leads")
    assert "Calls that wait for your decision" in (await bob.http.get(f"{office.gateway.url}/t/acme/")).text
    listed = await bob.http.get(f"{office.gateway.url}/t/acme/approvals")
    assert f'href="/t/acme/approvals/{office.approval}"' in listed.text
    done = await office.decide(bob, comment="fine")
    assert (done.status_code, done.headers.get("location")) == (303, f"/t/acme/approvals/{office.approval}"), done.text
    assert "Approved by corp:bob" in (await bob.http.get(office.page)).text
    result = await call(office)
    assert (result["isError"], result["content"][0]["text"]) == (False, "gone")
    entries = (await office.gateway.admin.get("/tenants/acme/audit?limit=100")).json()["items"]
    assert "user:corp:bob" in {one["principal"] for one in entries if one["action"].startswith("approval.")}
    state = await office.state()
    assert state["decided_by"] == "user:corp:bob"


async def test_an_agent_does_not_approve_its_own_call(office: Office) -> None:
    """Ours: neither the token of a person with the role, nor a key with the subject, nor the person itself (SAF-3)."""
    gateway, bearer = office.gateway, {"authorization": f"Bearer {office.token}"}
    page = await gateway.http.get(office.page, headers=bearer)
    assert (page.status_code, "/authorize?" in page.headers["location"]) == (303, True)
    form = {"verdict": "approve", "token": office.token, "tag": ""}
    for headers in (bearer, {**bearer, "origin": gateway.url}):
        assert (await gateway.http.post(office.page, data=form, headers=headers)).status_code == 403
    rest = f"{gateway.url}/admin/v1/tenants/acme/approvals/{office.approval}/approve"
    assert (await gateway.http.post(rest, json={}, headers=bearer)).status_code == 401
    wrong = await gateway.rpc("acme", (await gateway.create_key("acme", "approve", subject="CORP:ada")), "tools/list")
    assert wrong.status_code == 403
    ada = await office.person("ada", "leads")
    shown = await ada.http.get(office.page)
    assert "You requested this call yourself" in shown.text
    # the page has no form for Ada, so the token is that of the sign-out
    [token] = re.findall(r'name="token" value="(\w+)"', shown.text)
    assert (await office.send(ada, {"token": token, "tag": "", "verdict": "approve"})).status_code == 403
    assert (await office.state())["state"] == "pending"


async def test_a_group_or_role_lost_between_the_page_and_the_click_counts(office: Office) -> None:
    """Ours: before a decision the provider is asked about the groups, and the roles are read again (IDN-4)."""
    bob, provider = await office.person("bob", "leads"), office.application.provider
    form = {**decision_fields(await bob.http.get(office.page)), "verdict": "approve"}
    provider.publish(sub="bob", groups=["staff"])
    assert (await office.send(bob, form)).status_code == 403
    assert (await bob.http.get(office.page)).status_code == 403
    provider.publish(sub="bob", groups=["leads"])
    await office.gateway.admin.patch(ACCESS, json={"rules": [], "roles": []})
    assert (await office.send(bob, form)).status_code == 403
    await office.gateway.admin.patch(ACCESS, json={"rules": [], "roles": LEADS})
    provider.issuer.upstream.status = 400
    provider.issuer.publish(error="invalid_grant")
    assert (await office.send(bob, form)).status_code == 403, "the provider does not know the person any more"
    provider.issuer.upstream.status = 200
    people = (await office.gateway.admin.get("/tenants/acme/people")).json()["items"]
    [person] = [one for one in people if one["subject"] == "corp:bob"]
    await office.gateway.admin.post(f"/tenants/acme/people/{person['id']}/deny")
    for group in ("leads", "staff"):
        again = await office.person("eve", group)
        assert (await again.http.get(office.page)).status_code == 403, "an exception, or no group"
    assert (await office.state())["state"] == "pending"
    assert (await office.decide(await office.person("carol", "leads"))).status_code == 303


async def test_groups_that_the_provider_does_not_repeat_give_no_role(office: Office) -> None:
    """OpenID Connect Core §12.2: a refresh without an ID token is no proof that the group is held (IDN-4, SAF-3)."""
    bob, provider = await office.person("bob", "leads"), office.application.provider
    form = {**decision_fields(await bob.http.get(office.page)), "verdict": "approve"}
    provider.answer["id_token"] = None
    provider.publish()
    assert (await office.send(bob, form)).status_code == 403
    assert (await office.state())["state"] == "pending"


async def test_clicks_at_the_same_time_do_not_bring_a_lost_group_back(office: Office, database: TestDatabase) -> None:
    """Ours: a decision waits until another request has asked the provider, and then asks for itself (IDN-4, SAF-3)."""
    bob, provider = await office.person("bob", "leads"), office.application.provider
    form = {**decision_fields(await bob.http.get(office.page)), "verdict": "approve"}
    provider.publish(sub="bob", groups=["staff"])
    held = "update sign_ins set checked_at = now() - interval '10 minutes', lease = 'another',"
    held += " leased_until = now() + interval '300 ms' where subject = 'bob'"
    await execute(database.superuser_url, held)
    clicks = await asyncio.gather(*(office.send(bob, form) for _ in range(2)))
    assert [click.status_code for click in clicks] == [403, 403]
    assert (await office.state())["state"] == "pending"
    await execute(database.superuser_url, held)
    provider.issuer.upstream.seen.clear()
    pages = await asyncio.gather(*(bob.http.get(office.page) for _ in range(2)))
    asked = [seen.target for seen in provider.issuer.upstream.seen]
    assert ([page.status_code for page in pages], asked) == ([403, 403], ["/token"]), "the second page knows the answer"


async def test_nothing_is_approved_without_the_providers_answer(office: Office) -> None:
    """Ours: an approval needs the provider; a denial counts its last answer, so that people stop calls (IDN-4)."""
    bob, provider = await office.person("bob", "leads"), office.application.provider
    form = decision_fields(await bob.http.get(office.page))
    provider.issuer.upstream.status = 503
    approved = await office.send(bob, {**form, "verdict": "approve"})
    assert (approved.status_code, (await office.state())["state"]) == (503, "pending")
    assert (await office.send(bob, {**form, "verdict": "deny"})).status_code == 303
    assert (await office.state())["state"] == "denied"


async def test_a_person_that_the_issuer_no_longer_admits_decides_nothing(office: Office) -> None:
    """Ours: the admission rules count for the provider's present claims, also with a role of one's own (IDN-4)."""
    admin = office.gateway.admin
    assert (await admin.patch("/tenants/acme/issuers/corp", json={"rules": [{"group": "staff"}]})).status_code == 200
    await admin.patch(ACCESS, json={"rules": [], "roles": [{"role": "approve", "who": ["subject:corp:dave"]}]})
    dave = await office.person("dave", "staff")
    form = {**decision_fields(await dave.http.get(office.page)), "verdict": "approve"}
    office.application.provider.publish(sub="dave", groups=["former"])
    assert (await office.send(dave, form)).status_code == 403
    assert (await office.state())["state"] == "pending"


async def test_forms_of_others_decide_nothing(office: Office) -> None:
    """Ours: Origin, a token of this purpose and session, a version; another tenant's session opens none (SAF-3)."""
    bob = await office.person("bob", "leads")
    page = await bob.http.get(office.page)
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    good = {**decision_fields(page), "verdict": "approve"}
    signing_out = page.text.partition('name="token" value="')[2][:64]
    assert signing_out != good["token"]
    for headers in ({}, {"origin": "https://evil.example"}, {"origin": "null"}):
        assert (await office.send(bob, good, headers)).status_code == 403
    for token in ("", "0" * 64, signing_out):
        assert (await office.send(bob, {**good, "token": token})).status_code == 403, token
    assert (await office.send(bob, {**good, "tag": '"other"'})).status_code in {409, 412}
    carol = await office.person("carol", "leads")
    assert (await office.send(carol, good)).status_code == 403, "a form of another person's session"
    gateway = office.gateway
    await gateway.create_tenant("globex")
    await add_provider(gateway, "globex", office.application.provider)
    await gateway.admin.patch("/tenants/globex/access", json={"rules": [], "roles": LEADS})
    mallory = await office.person("mallory", "leads", slug="globex")
    assert (await mallory.http.get(office.page)).status_code == 303
    foreign = await mallory.http.get(office.page.replace("/t/acme/", "/t/globex/"))
    assert foreign.status_code == 404
    missing = await mallory.http.get(f"{gateway.url}/t/globex/approvals/apr_00000000000000000000")
    assert foreign.text == missing.text
    assert (await office.state())["state"] == "pending"


async def test_admins_give_no_role_that_they_cannot_give_to_a_key(office: Office, stand: Stand) -> None:
    """Ours: roles need the scope approve, directly and by an issuer that names the groups; the operator's bound counts
    (IDN-4, SAF-3)."""
    gateway = office.gateway
    admin, owner = [await gateway.create_key("acme", *scopes) for scopes in (["admin", "mcp"], ["admin", "approve"])]

    async def send(key: str, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        url = f"{gateway.url}/admin/v1/tenants/acme/{path}"
        return await gateway.http.request(method, url, json=body, headers={"authorization": f"Bearer {key}"})

    more = {"rules": [], "roles": [*LEADS, {"role": "approve", "who": ["subject:corp:mallory"]}]}
    assert (await send(admin, "PATCH", "access", more)).status_code == 403
    assert (await send(admin, "PATCH", "access", {"rules": [], "default": "deny"})).status_code == 200
    kept = (await gateway.admin.get(ACCESS)).json()
    assert (kept["default"], [{**LEADS[0], "kinds": []}]) == ("deny", kept["roles"])
    assert (await send(owner, "PATCH", "access", more)).status_code == 200
    for wrong in ("everyone", "keys", "key:key_1", "group:leads"):
        body = {"rules": [], "roles": [{"role": "approve", "who": [wrong]}]}
        assert (await send(owner, "PATCH", "access", body)).status_code == 400, wrong
    for role, status in (("use", 400), ("audit", 403), ("administer", 200)):
        body = {"rules": [], "roles": [*LEADS, {"role": role, "who": ["people"]}]}
        assert (await send(owner, "PATCH", "access", body)).status_code == status, role

    corp = (await gateway.admin.get("/tenants/acme/issuers/corp")).json()
    for named in ("corp", corp["id"]):
        for changed in ({"groups_claim": "roles"}, {"subject_claim": "email"}, {"jwks_url": f"{corp['url']}/other"}):
            assert (await send(admin, "PATCH", f"issuers/{named}", changed)).status_code == 403, (named, changed)
    by_id = {"roles": [{"role": "approve", "who": [f"group:{corp['id']}:leads"]}]}
    report = await send(admin, "POST", "access/report", by_id)
    assert "no such issuer" in report.text, report.text
    other = LocalProvider(new_issuer(stand.upstreams[1]))
    other.publish()
    await gateway.admin.put("/tenants/acme/egress", json={"allow": [other.issuer.upstream.authority]})
    made: dict[str, Any] = {"url": other.issuer.url, "rules": [{}], "sign_in": other.client}
    for named in ("corp", corp["id"]):  # it would end all roles of its people, and their auditors and approvers
        assert (await send(admin, "DELETE", f"issuers/{named}", {})).status_code == 403
    assert (await send(owner, "DELETE", "issuers/corp", {})).status_code == 204
    assert (await send(admin, "POST", "issuers", {"name": "corp", **made})).status_code == 403
    partner = await send(admin, "POST", "issuers", {"name": "partner", **made})
    assert partner.status_code == 201, partner.text
    await gateway.admin.put("/tenants/acme/ceilings", json={"admin_bounds": {"scopes": ["mcp", "admin"]}})
    bounded = await send(owner, "PATCH", "access", {"rules": [], "roles": []})
    assert (bounded.status_code, "may not grant approve" in bounded.text) == (403, True)
