"""Configuration as code from the command line: a process of its own, against a running gateway over a socket."""

import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from gateway.cli.exit_codes import ExitCode
from gateway.kinds.manifests import MANIFEST_KINDS
from tests.behaviour.cli.conftest import ROOT, Terminal
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.manifests import tenant_for_manifests, tenant_with_tools
from tests.support.primitives import add, template
from tests.support.upstream import RecordingUpstream
from tests.unit.cli.manifests.reading import VARIABLE, example_of

EXAMPLE = ROOT / "examples" / "platform"
_TEXT = {"kind": "template", "text": "x", "mimeType": "text/plain"}
_PROFILE = "apiVersion: gateway/v1\nkind: profile\nname: {}\ndescription: {}\n"


async def _acme(gateway: RunningGateway, slug: str = "acme") -> None:
    """A tenant with what the examples name."""
    await tenant_with_tools(gateway, slug)


def _examples(document: Path | None = None) -> Sequence[Mapping[str, object]]:
    """A manifest of every kind, with the members of its example; a source has the document, if it is given."""
    found = {name: example_of(name) for name in MANIFEST_KINDS}
    if document is not None:
        document.write_text(json.dumps(pets("https://pets.example")))
        of_url = {"url", "refresh"}
        source = {name: value for name, value in found["source"].items() if name not in of_url}
        found["source"] = {**source, "document": document.name}
    return list(found.values())


def _write(path: Path, manifests: Sequence[Mapping[str, object]]) -> Path:
    path.write_text(json.dumps(manifests))
    return path


async def _trail(gateway: RunningGateway, slug: str = "acme") -> list[str]:
    answer = await gateway.admin.get(f"/tenants/{slug}/audit", params={"kind": "change", "limit": 200})
    return [one["action"] for one in answer.json()["items"]]


async def test_an_export_is_equal_to_the_stored_objects(
    terminal: Terminal, gateway: RunningGateway, tmp_path: Path
) -> None:
    """Ours: an object of every kind is applied, exported, applied again without an entry, and diffed: empty (CFG-1)."""
    await tenant_for_manifests(gateway)  # the source of the override is a manifest, too
    declared = _write(tmp_path / "all.json", _examples(tmp_path / "pets.json"))
    secrets = {VARIABLE: "secret-of-the-examples"}
    different = await terminal.run("diff", "-f", str(declared), **secrets)
    assert different.code == ExitCode.DIFFERENT
    assert "+ profile readers" in different.out
    terms = "--yes", "--set", "all", "--secrets", str(tmp_path / "new.json")
    await terminal.do("apply", "-f", str(declared), *terms, **secrets)
    before = await _trail(gateway)

    exported = (await terminal.do("export")).out
    again = await terminal.do("apply", "-f", "-", "--yes", given=exported)
    equal = await terminal.do("diff", "-f", "-", "--json", given=exported)

    assert await _trail(gateway) == before
    assert "0 to" not in again.out
    report: Any = equal.value
    assert [one["outcome"] for one in report["tenants"]] == ["equal"]
    assert (await terminal.do("diff", "-f", str(declared), "--set", "all", **secrets)).code == 0
    assert secrets[VARIABLE] not in exported + different.out + again.out
    assert (await terminal.do("export")).out == exported
    for word in ("prf_", "version:", "created_at", "status", "\nid:"):
        assert word not in exported
    for name, kind in MANIFEST_KINDS.items():
        assert f"kind: {name}\n" in exported, kind


async def test_an_exported_folder_has_a_file_for_each_kind(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: a folder for a repository; another tenant has the same objects afterwards (CFG-1)."""
    await _acme(gateway)
    await gateway.create_tenant("other")
    await terminal.do("profile", "create", "b", "--description", "no")
    await terminal.do("profile", "create", "a")

    await terminal.do("export", "-o", "out", "--kind", "profile", "--kind", "webhook", "--kind", "policy")

    folder = terminal.folder / "out"
    assert sorted(path.name for path in folder.iterdir()) == ["policy.yaml", "profile.yaml"]
    assert (folder / "profile.yaml").read_text() == (
        "apiVersion: gateway/v1\nkind: profile\nname: a\nstructured_once: false\nselects_fields: false\n"
        "summary_threshold: 0\n---\napiVersion: gateway/v1\nkind: profile\nname: b\ndescription: 'no'\n"
        "structured_once: false\nselects_fields: false\nsummary_threshold: 0\n"
    )
    again = await terminal.run("export", "-o", "out")
    assert again.code == ExitCode.USAGE
    assert "is not empty" in again.err
    assert (await terminal.run("export", "--kind", "profiel")).code == ExitCode.USAGE
    await terminal.do("apply", "-f", "out", "--yes", "--tenant", "other", GATEWAY_TENANT="")
    assert (await gateway.admin.get("/tenants/other/profiles/b")).json()["description"] == "no"


async def test_a_plan_is_applied_while_nothing_has_changed(
    terminal: Terminal, gateway: RunningGateway, tmp_path: Path
) -> None:
    """Ours: a plan names the versions of its objects, holds no secret and expires (CFG-2)."""
    await _acme(gateway)
    await terminal.do("profile", "create", "kept", "--description", "old")
    manifest = tmp_path / "a.yaml"
    manifest.write_text(_PROFILE.format("kept", "new") + "---\n" + _PROFILE.format("made", "new"))
    await terminal.do("plan", "-f", str(manifest), "-o", "release.plan", "--commit", "4f2a9c1", "--author", "ada")
    stored = json.loads((tmp_path / "release.plan").read_text())
    assert [one["name"] for one in stored["tenants"][0]["body"]["expected"]] == ["kept", "made"]

    await terminal.do("profile", "update", "kept", "--description", "moved")
    stale = await terminal.run("apply", "release.plan", "--yes")
    assert stale.code == ExitCode.CONFLICT
    assert "profile kept has changed" in stale.err
    assert (await gateway.admin.get("/tenants/acme/profiles/made")).status_code == 404

    await terminal.do("plan", "-f", str(manifest), "-o", "release.plan", "--commit", "4f2a9c1", "--author", "ada")
    done = await terminal.do("apply", "release.plan", "--yes")
    assert "+ profile made" in done.out
    entries: Any = (await gateway.admin.get("/tenants/acme/audit", params={"limit": 2})).json()["items"]
    assert {"4f2a9c1", "ada"} <= set(json.dumps(entries).replace('"', " ").replace(",", " ").split())
    assert (await terminal.run("apply", "release.plan", "--yes")).code == ExitCode.CONFLICT
    await gateway.create_tenant("other")
    foreign = await terminal.run("apply", "release.plan", "--yes", "--tenant", "other")
    assert foreign.code == ExitCode.USAGE
    assert "the plan is for acme" in foreign.err


async def test_tenants_are_applied_one_after_another(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: a refusal stops before anything changes, or others go on; repeated, the rest is done (CFG-1)."""
    for slug in ("acme", "other"):
        await gateway.create_tenant(slug)
    folder = terminal.folder / "platform"
    for slug in ("acme", "ghost", "other"):
        (folder / slug).mkdir(parents=True)
        (folder / slug / "a.yaml").write_text(_PROFILE.format("a", "b") + f"tenant: {slug}\n")

    stopped = await terminal.run("apply", "-f", "platform", "--yes", GATEWAY_TENANT="")
    assert stopped.code == ExitCode.NOT_FOUND
    assert "tenant ghost" in stopped.err
    assert "not tried: acme, other" in stopped.err
    assert (await gateway.admin.get("/tenants/acme/profiles/a")).status_code == 404

    planned = await terminal.run("plan", "-f", "platform", "-o", "p", GATEWAY_TENANT="")
    assert planned.code == ExitCode.NOT_FOUND
    assert not (terminal.folder / "p").exists()

    some = await terminal.run("apply", "-f", "platform", "--yes", "--continue", "--json", GATEWAY_TENANT="")
    report: Any = some.value
    assert some.code == ExitCode.SOME_FAILED
    assert {one["tenant"]: one["outcome"] for one in report["tenants"]} == {
        "acme": "applied",
        "ghost": "failed",
        "other": "applied",
    }
    diff = await terminal.run("diff", "-f", "platform", GATEWAY_TENANT="")
    assert diff.code == ExitCode.SOME_FAILED
    await gateway.create_tenant("ghost")
    again = await terminal.do("apply", "-f", "platform", "--yes", "--json", GATEWAY_TENANT="")
    report = again.value
    assert [one["outcome"] for one in report["tenants"]] == ["equal", "applied", "equal"]


async def test_a_set_prunes_its_own_objects(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: pruning is shown first, bounded and asked for; a hand change of an owned object is drift (CFG-3)."""
    await gateway.create_tenant("acme")
    manifest = terminal.folder / "a.yaml"
    manifest.write_text("---\n".join(_PROFILE.format(name, "b") for name in ("a", "b", "c")))
    await terminal.do("profile", "create", "mine")
    await terminal.do("apply", "-f", "a.yaml", "--set", "platform", "--yes")
    manifest.write_text(_PROFILE.format("a", "b"))
    await terminal.do("profile", "update", "b", "--description", "by hand")

    shown = await terminal.run("diff", "-f", "a.yaml", "--set", "platform", "--prune")
    assert shown.code == ExitCode.DIFFERENT
    assert "- profile b (differs from what this set applied last)" in shown.out
    assert "- profile c" in shown.out
    assert "mine" not in shown.out
    few = await terminal.run("apply", "-f", "a.yaml", "--set", "platform", "--prune", "--max-deletions", "1", "--yes")
    assert few.code == ExitCode.CONFLICT
    unsure = await terminal.run("apply", "-f", "a.yaml", "--set", "platform", "--prune")
    assert unsure.code == ExitCode.USAGE
    assert "2 to delete" in unsure.out
    declined = await terminal.run("apply", "-f", "a.yaml", "--set", "platform", "--prune", typed="n\n")
    assert declined.code == ExitCode.FAILED
    assert "Apply to acme: 2 to delete" in declined.err
    done = await terminal.run("apply", "-f", "a.yaml", "--set", "platform", "--prune", typed="y\n")
    assert done.code == 0
    names = [one["name"] for one in (await gateway.admin.get("/tenants/acme/profiles")).json()["items"]]
    assert sorted(names) == ["a", "default", "mine"]

    foreign = await terminal.run("apply", "-f", "a.yaml", "--set", "other", "--yes")
    assert foreign.code == ExitCode.CONFLICT
    await terminal.do("apply", "-f", "a.yaml", "--set", "other", "--adopt", "--yes")
    for wrong in (
        ("--prune",),
        ("--adopt",),
        ("--set", "x", "--prune-protected"),
        ("--set", "x", "--max-deletions", "1"),
    ):
        assert (await terminal.run("diff", "-f", "a.yaml", *wrong)).code == ExitCode.USAGE


async def test_faults_of_the_gateway_have_their_places(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: a value that the gateway refuses is named by file, document and path (CFG-1)."""
    await gateway.create_tenant("acme")
    (terminal.folder / "a.yaml").write_text(
        _PROFILE.format("a", "b")
        + "---\n"
        + _PROFILE.format("b", "c")
        + "include: [{safety: [unsafe]}]\n---\n"
        + "apiVersion: gateway/v1\nkind: audit-sink\nname: s\ntype: fax\ntarget: x\n"
    )

    refused = await terminal.run("apply", "-f", "a.yaml", "--yes")

    assert refused.code == ExitCode.FAILED
    assert "a.yaml, document 2: /include/0/safety/0" in refused.err
    assert "a.yaml, document 3: /type" in refused.err


async def test_generated_secrets_are_shown_once_and_in_no_log(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: in a private new file, or printed if that is asked for (CFG-4)."""
    await gateway.create_tenant("acme")
    hook = "apiVersion: gateway/v1\nkind: webhook\nname: {}\n"
    for number in range(4):
        (terminal.folder / f"{number}.yaml").write_text(hook.format(f"cms-{number}"))
    (terminal.folder / "kept").write_text("mine")

    logged = await terminal.run("apply", "-f", "0.yaml", "--yes")
    assert logged.code == ExitCode.USAGE
    assert "give --secrets FILE" in logged.err
    exists = await terminal.run("apply", "-f", "0.yaml", "--yes", "--secrets", "kept")
    assert exists.code == ExitCode.USAGE
    assert (terminal.folder / "kept").read_text() == "mine"
    assert (await gateway.admin.get("/tenants/acme/webhooks/cms-0")).status_code == 404

    written = await terminal.do("apply", "-f", "0.yaml", "--yes", "--json", "--secrets", "new")
    path = terminal.folder / "new"
    [stored] = json.loads(path.read_text())
    assert (path.stat().st_mode & 0o777, stored["name"]) == (0o600, "cms-0")
    assert stored["secret"].startswith("whsec_")
    assert stored["secret"] not in written.out + written.err
    printed = await terminal.do("apply", "-f", "1.yaml", "--yes", "--secrets", "-")
    assert "whsec_" in printed.out
    reported: Any = (await terminal.do("apply", "-f", "2.yaml", "--yes", "--secrets", "-", "--json")).value
    assert reported["tenants"][0]["objects"][0]["secret"].startswith("whsec_")
    await terminal.do("plan", "-f", "3.yaml", "-o", "p")
    assert "whsec_" not in (terminal.folder / "p").read_text()
    assert "whsec_" not in (await terminal.do("export")).out
    await terminal.do("apply", "-f", "0.yaml", "--yes", "--secrets", "empty")
    assert not (terminal.folder / "empty").exists()


async def test_the_schema_describes_exported_manifests(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: editors check manifests with the schema that the gateway derives from its declarations (CFG-1)."""
    await _acme(gateway)
    schema: Any = (await terminal.do("schema")).value
    exported: Any = (await terminal.do("export", "--json")).value

    found = jsonschema_rs.validator_for(schema)
    for manifest in [*exported, *_examples()]:
        assert found.is_valid(manifest), (manifest, [str(one) for one in found.iter_errors(manifest)])
    assert not found.is_valid({"apiVersion": "gateway/v1", "kind": "profile", "name": "a", "unknown": 1})


async def test_a_command_needs_manifests(terminal: Terminal) -> None:
    """Ours: nothing is pruned because a folder is empty or a name is wrong (CFG-3)."""
    (terminal.folder / "empty").mkdir()

    for arguments in (("diff",), ("apply", "--yes"), ("plan", "-o", "x"), ("plan", "-f", "empty")):
        assert (await terminal.run(*arguments)).code == ExitCode.USAGE
    for command in ("diff", "apply"):
        refused = await terminal.run(command, "-f", "empty", "-f", "missing")
        assert refused.code == ExitCode.USAGE
        assert "missing: cannot be read" in refused.err
        assert "no manifest found" in (await terminal.run(command, "-f", "empty")).err


async def test_the_example_is_applied(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: the folder of two tenants is accepted, and so are the commands of its workflow (CFG-1)."""
    for slug in ("acme", "globex"):
        await gateway.create_tenant(slug)
    shutil.copytree(EXAMPLE / "tenants", terminal.folder / "platform")
    workflow = yaml.safe_load((EXAMPLE / "workflow.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    [diff, apply] = [shlex.split(step["run"]) for step in steps if step.get("run", "").startswith("gateway ")]
    shown = await terminal.run(*diff[1 : diff.index("||")], GATEWAY_TENANT="", SHOP_TOKEN="t0ken")
    assert shown.code == ExitCode.DIFFERENT

    values = {"$GITHUB_SHA": "4f2a9c1", "$GITHUB_ACTOR": "ada", "$RUNNER_TEMP/new-secrets.json": "new"}
    await terminal.do(*(values.get(word, word) for word in apply[1:]), GATEWAY_TENANT="", SHOP_TOKEN="t0ken")

    generated = {
        (one["tenant"], one["name"]): one["secret"] for one in json.loads((terminal.folder / "new").read_text())
    }
    assert generated.keys() == {("acme", "alerts"), ("acme", "support-agent"), ("globex", "support-agent")}
    key = generated["acme", "support-agent"]
    listed = await gateway.http.get("/admin/v1/tenants/acme/keys", headers={"authorization": f"Bearer {key}"})
    assert listed.status_code == 403, "the key is one of MCP clients"
    assert (await gateway.admin.get("/tenants/globex/profiles/support")).status_code == 200
    await terminal.do("diff", "-f", "platform", GATEWAY_TENANT="")
    sources: Any = (await gateway.admin.get("/tenants/acme/sources")).json()["items"]
    assert [(one["name"], one["status"]["credentials"]) for one in sources] == [("shop", ["token"]), ("stock", [])]
    assert (await gateway.admin.get("/tenants/acme/tools/stock_get_article")).status_code == 200
    assert (await gateway.admin.get("/tenants/globex/tools/list_tickets")).status_code == 200


async def test_only_objects_of_admins_are_exported(
    terminal: Terminal, gateway: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: imported tools and built-in profiles are listed, and are in no export; own primitives are (CFG-1)."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    await add(gateway, "acme", "resource-templates", template("note://{id}", _TEXT))

    exported = (await terminal.do("export")).out

    assert "get_pet" not in exported
    assert "name: default" not in exported
    assert "uriTemplate: note://{id}" in exported
    await terminal.do("diff", "-f", "-", given=exported)
    await gateway.create_tenant("other")
    await terminal.do("export", "-o", "out")
    await terminal.do("apply", "-f", "out", "--yes", "--tenant", "other", GATEWAY_TENANT="")
    listed: Any = (await gateway.admin.get("/tenants/other/resource-templates")).json()["items"]
    assert [one["definition"]["uriTemplate"] for one in listed] == ["note://{id}"]


async def test_a_refused_secret_is_in_no_output(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: a gateway that starts no programs refuses their secrets, and no output or audit entry has one (CFG-4)."""
    await gateway.create_tenant("acme")
    secret = "s3cret-value-of-the-tests"
    (terminal.folder / "key").write_text(secret)
    (terminal.folder / "a.yaml").write_text(
        "apiVersion: gateway/v1\nkind: live-source\nname: a\ntype: command\nenabled: false\nsettings:\n"
        "  argv: [/bin/false]\n  env: {TOKEN: {env: TOKEN_OF_A}, KEY: {file: key}}\n"
    )
    (terminal.folder / "b.yaml").write_text(
        "apiVersion: gateway/v1\nkind: live-source\nname: b\ntype: command\n"
        "settings: {argv: 7, env: {A: {file: key}}}\n"
    )
    variables = {"TOKEN_OF_A": secret}
    shown: list[str] = []
    for arguments in (
        ("diff", "-f", "a.yaml"),
        ("diff", "-f", "a.yaml", "--json"),
        ("plan", "-f", "a.yaml", "-o", "a.plan"),
        ("apply", "-f", "b.yaml", "--yes"),
        ("apply", "-f", "a.yaml", "--yes", "--json"),
        ("export", "--kind", "live-source"),
        ("audit", "list", "--json"),
    ):
        ended = await terminal.run(*arguments, **variables)
        shown += [ended.out, ended.err]
    shown += [path.read_text() for path in terminal.folder.glob("*.plan")]

    assert "this gateway starts no commands" in "".join(shown)
    assert secret not in "".join(shown)
    missing = await terminal.run("apply", "-f", "a.yaml", "--yes")
    assert missing.code == ExitCode.USAGE
    assert "/settings/env/TOKEN: the variable TOKEN_OF_A is not set" in missing.err
    assert "warning: a.yaml: /settings/env/TOKEN" in (await terminal.run("diff", "-f", "a.yaml")).err
