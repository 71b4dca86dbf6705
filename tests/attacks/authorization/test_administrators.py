"""Attacks on the admin API with access tokens of people: tokens for other URLs, roles beyond their scopes, denials."""

import hashlib
from dataclasses import dataclass
from typing import Any

import httpx
import jwt
import orjson
import pytest

from gateway.identity.issued_tokens import TOKEN_PURPOSE
from gateway.store.encryption import EnvelopeCipher
from gateway.upstream.auth.signing_keys import SigningKeys
from tests.support.authorization import Application
from tests.support.documents import pets
from tests.support.gateway import SECRET_KEY
from tests.support.issuer import add_issuer
from tests.support.proofs import ProofKey

ROLES = [
    {"role": "administer", "who": ["group:corp:owners"], "unless": ["subject:corp:eve"]},
    {"role": "approve", "who": ["group:corp:owners"]},
    {"role": "audit", "who": ["group:corp:auditors"]},
]


@dataclass(slots=True)
class AdminTokens:
    """The admin API of `acme`, whose groups `owners` and `auditors` have roles."""

    application: Application

    def url(self, slug: str = "acme") -> str:
        """The admin API of a tenant, which is the audience of its tokens."""
        return f"{self.application.gateway.url}/admin/v1/tenants/{slug}"

    def token(self, *groups: str, audience: object = None, **claims: Any) -> str:
        """A token of the tenant's issuer, by default for the admin API."""
        issuer = self.application.provider.issuer
        return issuer.token(audience or self.url(), groups=list(groups), **claims)

    async def ask(
        self, token: str, path: str = "tools", method: str = "GET", *, slug: str = "acme", **more: Any
    ) -> httpx.Response:
        """The response to a request with a token."""
        headers = {"authorization": f"Bearer {token}", **more.pop("headers", {})}
        return await self.application.gateway.http.request(method, f"{self.url(slug)}/{path}", headers=headers, **more)

    async def statuses(self, token: str) -> tuple[int, int]:
        """The statuses of the list of tools and of the trail."""
        return (await self.ask(token)).status_code, (await self.ask(token, "audit")).status_code


@pytest.fixture
async def admins(application: Application) -> AdminTokens:
    """The roles are given by the operator."""
    given = await application.gateway.admin.patch("/tenants/acme/access", json={"rules": [], "roles": ROLES})
    assert given.status_code == 200, given.text
    return AdminTokens(application)


async def test_people_have_the_scopes_of_their_roles_and_no_others(admins: AdminTokens) -> None:
    """Ours: a role is what its scope is for a key; the trail names the person, and no token approves (IDN-4)."""
    owner, auditor = admins.token("owners"), admins.token("auditors", sub="bob")
    assert [await admins.statuses(token) for token in (owner, auditor)] == [(200, 200), (403, 200)]
    for token in (admins.token("owners", sub="eve"), admins.token(sub="joe"), admins.token("owners", hasgroups=True)):
        refused = await admins.ask(token)
        assert (refused.status_code, "no role of this person" in refused.text) == (403, True), refused.text

    made = await admins.ask(owner, "profiles/cats", "PUT", json={"description": "Cats"})
    assert made.status_code == 201, made.text
    entries = (await admins.ask(auditor, "audit")).json()["items"]
    assert {one["principal"] for one in entries if one["action"].startswith("profile.")} == {"user:corp:ada"}

    granted = {
        scope: (await admins.ask(owner, "keys", "POST", json={"name": scope, "scopes": [scope]})).status_code
        for scope in ("mcp", "admin", "approve", "audit")
    }
    assert granted == {"mcp": 201, "admin": 201, "approve": 403, "audit": 403}
    missing = "approvals/apr_00000000000000000000/approve"
    assert (await admins.ask(owner, missing, "POST", json={})).status_code == 403
    assert (await admins.ask(owner, "ceilings", "PUT", json={"burst": 9})).status_code == 403
    wider = [*ROLES, {"role": "audit", "who": ["subject:corp:ada"]}]
    assert (await admins.ask(owner, "access", "PUT", json={"rules": [], "roles": wider})).status_code == 403


async def test_a_token_for_another_url_is_none_at_the_admin_api(admins: AdminTokens) -> None:
    """RFC 8707: an MCP client's token does not administer, and no tenant's token another tenant (ISO-1, IDN-4)."""
    application, gateway = admins.application, admins.application.gateway
    await gateway.create_tenant("globex")
    issuer = application.provider.issuer
    await add_issuer(gateway, "globex", issuer, sign_in=application.provider.client)
    await gateway.admin.patch("/tenants/globex/access", json={"rules": [], "roles": ROLES})
    further = await gateway.admin.patch("/tenants/acme/issuers/corp", json={"audiences": ["api://acme"]})
    assert further.status_code == 200, further.text
    good, theirs = admins.token("owners"), admins.token("owners", audience=admins.url("globex"))
    assert [(await admins.ask(good, slug=slug)).status_code for slug in ("acme", "globex", "acme")] == [200, 401, 200]
    assert [(await admins.ask(theirs, slug=slug)).status_code for slug in ("acme", "globex")] == [401, 200]
    assert await application.status(good) == 401

    application.claims = {"groups": ["owners"]}
    issued = (await application.tokens())["access_token"]
    claims = {**jwt.decode(issued, options={"verify_signature": False}), "aud": admins.url()}
    signed = SigningKeys(EnvelopeCipher([SECRET_KEY]).derive_all(TOKEN_PURPOSE)).sign(claims, kind="at+jwt")
    for token in (
        admins.token("owners", audience="api://acme"),
        admins.token("owners", audience=f"{gateway.url}/t/acme/mcp"),
        admins.token("owners", audience=f"{admins.url()}/tools"),
        admins.token("owners", audience=[admins.url(), f"{gateway.url}/t/acme/mcp"]),
        admins.token("owners", audience=[admins.url(), admins.url("globex")]),
        admins.token("owners", audience=f"{admins.url()} {gateway.url}/t/acme/mcp"),
        admins.token("owners", audience=f"{gateway.url}/admin/v1"),
        issued,
        signed,
        jwt.encode({**claims, "iss": issuer.url}, "secret-of-the-attacker-with-enough-bytes", algorithm="HS256"),
    ):
        assert await admins.statuses(token) == (401, 401)
    assert (await admins.ask(admins.token("owners", audience=[admins.url()]))).status_code == 200
    assert await application.status(admins.token("owners", audience="api://acme")) == 200
    assert (await gateway.http.get("/admin/v1/tenants", headers={"authorization": f"Bearer {good}"})).status_code == 401


async def test_a_workload_applies_manifests_of_its_tenant(admins: AdminTokens) -> None:
    """Ours: a build with a token of an issuer applies what an admin may set, and no more (IDN-4, CFG-3)."""
    gateway, workload = admins.application.gateway, "repo:acme/platform:ref:refs/heads/main"
    roles = [{"role": "administer", "who": [f"subject:corp:{workload}"]}]
    await gateway.admin.patch("/tenants/acme/access", json={"roles": roles})
    await gateway.create_tenant("globex")
    token, wanted = admins.token(sub=workload), [{"kind": "profile", "name": "cats"}]

    async def apply(objects: list[dict[str, Any]], token: str = token, **more: Any) -> httpx.Response:
        slug = more.pop("slug", "acme")
        return await admins.ask(token, "apply", "POST", slug=slug, json={"objects": objects, "set": "build", **more})

    done = await apply(wanted)
    assert (done.status_code, done.json()["objects"][0]["action"]) == (200, "create"), done.text
    entries = (await gateway.admin.get("/tenants/acme/audit", params={"kind": "change"})).json()["items"]
    created = [one for one in entries if one["action"] == "profile.create"]
    assert [(one["principal"], one["detail"]["set"]) for one in created] == [(f"user:corp:{workload}", "build")]
    for other in (workload.replace("main", "topic"), "repo:eve/platform:ref:refs/heads/main"):
        assert (await apply(wanted, admins.token(sub=other))).status_code == 403
    for audience in (f"{gateway.url}/t/acme/mcp", admins.url("globex")):
        assert (await apply(wanted, admins.token(sub=workload, audience=audience))).status_code == 401
    assert (await apply(wanted, slug="globex")).status_code == 401
    wider = [*roles, {"role": "audit", "who": [f"subject:corp:{workload}"]}]
    for kind, name, members in (
        ("egress", None, {"allow": ["10.0.0.1:80"]}),
        ("ceilings", None, {"burst": 9}),
        ("audit-sink", "disk", {"kind": "file", "target": "acme"}),
        ("access", None, {"roles": wider}),
    ):
        named = {} if name is None else {"name": name}
        one = {"kind": kind, **named, "members": members}
        terms: list[dict[str, Any]] = [{}, {"dry_run": True}, {"adopt": True}]
        for more in terms:
            refused = await apply([{"kind": "profile", "name": "dogs"}, one], **more)
            assert refused.status_code == (409 if kind == "access" and "adopt" not in more else 403), refused.text
    assert (await gateway.admin.get("/tenants/acme/profiles/dogs")).status_code == 404


async def test_a_role_is_limited_to_manifests_of_its_kinds(admins: AdminTokens) -> None:
    """Ours: a limited role applies and prunes objects of its kinds, and uses nothing else of the admin API (IDN-4)."""
    gateway, who = admins.application.gateway, ["subject:corp:ci"]
    limited = {"role": "administer", "who": who, "kinds": ["profile", "webhook-endpoint"]}

    async def give(*roles: dict[str, Any]) -> int:
        answer = await gateway.admin.patch("/tenants/acme/access", json={"roles": list(roles)})
        return answer.status_code

    for wrong in (["access"], ["egress"], ["ceilings"], ["tenant"], ["profiles"], ["profile", "x" * 65]):
        assert await give({**limited, "kinds": wrong}) == 400
    assert await give({**limited, "role": "audit"}) == 400
    assert await give(limited) == 200
    token = admins.token(sub="ci")

    async def apply(*objects: dict[str, Any], **more: Any) -> int:
        body = {"objects": list(objects), "set": "build", **more}
        return (await admins.ask(token, "apply", "POST", json=body)).status_code

    cats, guardrail = {"kind": "profile", "name": "cats"}, {"kind": "policy", "members": {"dangerous": "deny"}}
    assert await apply(cats) == 200
    for more in ({}, {"dry_run": True}, {"adopt": True}):
        assert await apply(cats, guardrail, **more) == 403
    for method, path in (
        ("GET", "tools"),
        ("GET", "profiles"),
        ("PUT", "profiles/cats"),
        ("DELETE", "profiles/cats"),
        ("POST", "keys"),
        ("PATCH", "access"),
        ("GET", "audit"),
        ("POST", "tools/greet/try"),
    ):
        sent: dict[str, Any] = {} if method == "GET" else {"json": {}}
        assert (await admins.ask(token, path, method, **sent)).status_code == 403, path
    assert await give({"role": "administer", "who": who}) == 200
    full = admins.token(sub="ci", jti="full")
    body = {"objects": [{"kind": "webhook", "name": "own"}], "set": "build"}
    assert (await admins.ask(full, "apply", "POST", json=body)).status_code == 200
    assert await give(limited, {"role": "audit", "who": who}) == 200
    token = admins.token(sub="ci", jti="limited")
    refused = await admins.ask(token, "apply", "POST", json={"objects": [cats], "set": "build", "prune": True})
    assert (refused.status_code, refused.json()["errors"][0]["reason"]) == (
        403,
        "would remove objects of kinds to which the role of this person is not limited",
    )
    assert await admins.statuses(token) == (403, 200)
    assert await apply({"kind": "profile", "name": "dogs"}) == 200
    probe = {"kind": "webhook", "name": "own", "etag": None}
    probed = await admins.ask(token, "apply", "POST", json={"objects": [cats], "expected": [probe], "dry_run": True})
    assert (probed.status_code, "not limited" in probed.json()["errors"][0]["reason"]) == (403, True)
    assert await give({**limited, "kinds": ["tool"]}, {**limited, "who": ["group:corp:owners"]}) == 200
    both = admins.token("owners", sub="ci")
    assert (await admins.ask(both, "apply", "POST", json={"objects": [cats], "set": "build"})).status_code == 200


async def test_a_role_for_sources_uploads_documents_and_keeps_overrides(admins: AdminTokens) -> None:
    """Ours: a build with documents needs no other role; it removes no override with a source (IDN-4)."""
    gateway, who = admins.application.gateway, ["subject:corp:ci"]
    document = orjson.dumps(pets("https://pets.example"))
    digest = hashlib.sha256(document).hexdigest()
    source = {"kind": "source", "name": "pets", "members": {"document": f"sha256:{digest}"}}

    async def ask(kinds: list[str], method: str, path: str, **more: Any) -> int:
        role = {"role": "administer", "who": who, "kinds": kinds}
        assert (await gateway.admin.patch("/tenants/acme/access", json={"roles": [role]})).is_success
        answer = await admins.ask(admins.token(sub="ci", jti=f"{kinds}{method}"), path, method, **more)
        return answer.status_code

    yaml, place = {"content": document, "headers": {"content-type": "application/yaml"}}, f"documents/{digest}"
    assert await ask(["profile"], "PUT", place, **yaml) == 403
    assert await ask(["source"], "PUT", place, **yaml) == 200
    assert await ask(["profile", "override"], "GET", place) == 403
    assert await ask(["source"], "GET", place) == 200
    assert await ask(["source"], "POST", "apply", json={"objects": [source], "set": "build"}) == 200
    changed = await gateway.admin.patch("/tenants/acme/tools/get_pet", json={"safety": "dangerous"})
    assert changed.is_success, changed.text
    other = {"kind": "source", "name": "other", "members": {"document": f"sha256:{digest}", "prefix": "other"}}
    pruning = {"objects": [other], "set": "build", "prune": True}
    assert await ask(["source"], "POST", "apply", json=pruning) == 403
    assert (await gateway.admin.get("/tenants/acme/tools/get_pet")).json()["status"]["safety"] == "dangerous"
    assert await ask(["source", "override"], "POST", "apply", json=pruning) == 200


async def test_a_client_of_the_admin_api_finds_the_issuer(admins: AdminTokens) -> None:
    """RFC 9728: the challenge leads to the metadata of the tenant's admin API, if there is any. It never names
    the gateway as an authorization server, because the gateway issues no token for the admin API (TEN-2, IDN-4).
    """
    gateway, issuer = admins.application.gateway, admins.application.provider.issuer
    challenges: dict[str, list[str]] = {}
    for slug in ("acme", "missing"):
        plain = await gateway.http.get(f"{admins.url(slug)}/tools?limit=1")
        sent = [await admins.ask("wrong", path, slug=slug) for path in ("tools", "made/up", "keys/key_x")]
        challenges[slug] = [answer.headers["www-authenticate"] for answer in (plain, sent[0], sent[2])]
        assert [answer.status_code for answer in (plain, *sent)] == [401, 401, 404, 401]
    found = f'resource_metadata="{gateway.url}/.well-known/oauth-protected-resource/admin/v1/tenants/acme"'
    assert challenges["acme"] == [f"Bearer {found}", *[f'Bearer error="invalid_token", {found}'] * 2]
    assert challenges["missing"] == ["Bearer", *['Bearer error="invalid_token"'] * 2]
    for path in ("", f'/x"{"a" * 64}/tools'):
        answer = await gateway.http.get(f"/admin/v1/tenants{path}")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")

    metadata = (await gateway.http.get(found.split('"')[1])).json()
    assert (metadata["resource"], metadata["authorization_servers"]) == (admins.url(), [issuer.url])
    at_mcp = (await gateway.http.get("/.well-known/oauth-protected-resource/t/acme/mcp")).json()
    assert at_mcp["authorization_servers"] == [f"{gateway.url}/t/acme"]
    for below in ("/tools", "/"):
        place = f"/.well-known/oauth-protected-resource/admin/v1/tenants/acme{below}"
        assert (await gateway.http.get(place)).status_code == 404, place

    rules = {"rules": [{"scope": "owning", "group": "owners"}]}
    (await gateway.admin.patch("/tenants/acme/issuers/corp", json=rules)).raise_for_status()
    refused = await admins.ask(admins.token("owners", jti="scope"))
    expected = f'Bearer error="insufficient_scope", scope="owning", {found}'
    assert (refused.status_code, refused.headers["www-authenticate"]) == (403, expected)
    assert (await admins.ask(admins.token("owners", scope="owning"))).status_code == 200
    roleless = await admins.ask(admins.token("owners", scope="owning", sub="eve"))
    assert (roleless.status_code, "www-authenticate" in roleless.headers) == (403, False)


async def test_a_denied_person_and_a_stolen_bound_token_administer_nothing(admins: AdminTokens) -> None:
    """Ours: a denial holds here too, and a token that is bound needs the client's proof (RFC 9449, TEN-2, IDN-4)."""
    admin, key = admins.application.gateway.admin, ProofKey()
    token = admins.token("owners")
    bound = admins.token("owners", sub="bob", cnf={"jkt": key.thumbprint})
    url = f"{admins.url()}/tools"
    proofs = [
        key.prove(url, bound, "GET"),
        ProofKey().prove(url, bound, "GET"),
        key.prove(f"{admins.url()}/keys", bound, "GET"),
    ]
    answers = [
        await admins.ask(bound, headers={"authorization": f"DPoP {bound}", "dpop": proof}) for proof in proofs
    ] + [await admins.ask(bound)]
    assert [answer.status_code for answer in answers] == [200, 401, 401, 401]

    assert (await admins.ask(token)).status_code == 200
    people = (await admin.get("/tenants/acme/people")).json()["items"]
    [ada] = [each["id"] for each in people if each["subject"] == "corp:ada"]
    (await admin.post(f"/tenants/acme/people/{ada}/deny")).raise_for_status()
    assert (await admins.ask(token)).status_code == 401
    assert (await admins.ask(admins.token("owners", jti="2"))).status_code == 401


async def test_keys_that_a_denied_person_made_are_named(admins: AdminTokens) -> None:
    """Ours: the admin who denies a person sees the valid keys that the person may know, also those that the person made
    with another key; a rotation by others ends that knowledge, with the old secret (IDN-4).
    """
    gateway = admins.application.gateway

    async def made(by: str, path: str = "keys", **body: object) -> dict[str, Any]:
        answer = await admins.ask(by, path, "POST", json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def shown(path: str, method: str = "GET") -> dict[str, Any]:
        found: dict[str, Any] = (await gateway.admin.request(method, f"/tenants/acme/{path}")).json()
        return found

    owner = admins.token("owners")
    admin = await made(owner, name="deploy", scopes=["admin", "mcp"])
    agent = await made(admin["key"], name="agent", scopes=["mcp"])
    await made(admin["key"], name="same", scopes=["mcp"], subject="corp:ada")
    ended = await made(owner, name="ended", scopes=["mcp"])
    assert (await gateway.admin.post(f"/tenants/acme/keys/{ended['id']}/revoke")).is_success
    other = await shown(f"keys/{(await made(admins.token('owners', sub='bob'), name='bob', scopes=['mcp']))['id']}")
    operators = await shown("keys?search=user:corp:ada")
    assert (admin["made_by"], other["made_by"]) == (["user:corp:ada"], ["user:corp:bob"])
    assert agent["made_by"] == [f"key:{admin['id']}", "user:corp:ada"]
    assert {key["name"] for key in operators["items"]} == {"deploy", "agent", "same", "ended"}

    denied = await shown("people/corp:ada/deny", "POST")
    assert sorted(denied["keys_made"]) == sorted([admin["id"], agent["id"]])
    assert (await admins.ask(admin["key"])).status_code == 200
    found = await gateway.admin.post("/keys/check", json={"text": agent["key"]})
    assert found.json()["found"][0]["key"]["made_by"] == agent["made_by"]

    await gateway.admin.post(f"/tenants/acme/keys/{agent['id']}/rotate", json={"overlap_s": 60})
    people = {person["subject"]: sorted(person["keys_made"]) for person in (await shown("people"))["items"]}
    assert people == {"corp:ada": sorted([admin["id"], agent["id"]]), "corp:bob": [other["id"]]}
    assert (await shown(f"keys/{agent['id']}"))["made_by"] == ["operator", *agent["made_by"]]
    await shown(f"keys/{agent['id']}/end-old-secret", "POST")
    await shown(f"keys/{admin['id']}/revoke", "POST")
    assert (await shown("people/corp:ada"))["keys_made"] == []
