"""Manifests of sources from the command line: documents beside them are uploaded by digest, and exported as files."""

import json
from pathlib import Path
from typing import Any

from gateway.cli.exit_codes import ExitCode
from tests.behaviour.cli.conftest import Terminal
from tests.support.documents import pets, secured
from tests.support.gateway import RunningGateway
from tests.support.upstream import RecordingUpstream

URL = "https://pets.example"
SOURCE = "apiVersion: gateway/v1\nkind: source\nname: {}\nprefix: {}\n"


def _folder(path: Path, upstream: RecordingUpstream) -> Path:
    """A folder with three sources: a document beside the manifest, one in a folder, and one of a URL."""
    (path / "apis").mkdir(parents=True)
    (path / "pets.openapi.json").write_text(json.dumps(pets(URL)))
    (path / "apis" / "more.yaml").write_text(json.dumps(secured(URL)))  # JSON is YAML
    upstream.body = json.dumps(pets(URL)).encode()
    token = "credentials:\n  token: {value: {env: MORE_TOKEN}}\n"
    (path / "sources.yaml").write_text(
        f"{SOURCE.format('pets', 'p')}document: pets.openapi.json\n---\n"
        f"{SOURCE.format('more', 'm')}document: apis/more.yaml\n{token}---\n"
        f"{SOURCE.format('far', 'f')}url: {upstream.url}/a\nrefresh: gateway\n"
    )
    return path


async def _sources(gateway: RunningGateway, slug: str = "acme") -> dict[str, Any]:
    items = (await gateway.admin.get(f"/tenants/{slug}/sources")).json()["items"]
    return {one["name"]: one["status"] for one in items}


async def test_sources_of_a_folder_are_applied_and_exported(
    terminal: Terminal, gateway: RunningGateway, upstream: RecordingUpstream, tmp_path: Path
) -> None:
    """Ours: an export with its documents is equal, and another tenant gets the same sources from it (CFG-6)."""
    await terminal.create_tenant()
    await gateway.create_tenant("other")
    folder, secret = _folder(tmp_path / "in", upstream), {"MORE_TOKEN": "s3cr3t-of-the-sources"}
    different = await terminal.run("diff", "-f", str(folder), **secret)
    assert different.code == ExitCode.DIFFERENT, different.err
    assert "+ source pets" in different.out
    assert await _sources(gateway) == {}
    await terminal.do("apply", "-f", str(folder), "--yes", "--set", "all", **secret)
    assert {name: one["credentials"] for name, one in (await _sources(gateway)).items()} == {
        "far": [],
        "more": ["token"],
        "pets": [],
    }
    assert (await terminal.do("diff", "-f", str(folder), "--set", "all", **secret)).code == 0
    unset = await terminal.do("diff", "-f", str(folder), "--set", "all")
    assert "MORE_TOKEN is not set" in unset.err

    await terminal.do("export", "-o", "out", "--kind", "source")
    written = tmp_path / "out"
    assert sorted(path.name for path in written.iterdir()) == ["more.openapi.json", "pets.openapi.json", "source.yaml"]
    assert (written / "pets.openapi.json").read_bytes() == (folder / "pets.openapi.json").read_bytes()
    manifest = (written / "source.yaml").read_text()
    assert f"url: {upstream.url}/a\n" in manifest
    assert manifest.count("refresh: gateway\n") == 1
    assert "# credentials: {SCHEME: {value: {env: SOURCE_MORE_CREDENTIALS}}}" in manifest
    before = await _sources(gateway)
    again = await terminal.do("apply", "-f", "out", "--yes")
    assert ("0 to" in again.out, await _sources(gateway)) == (False, before)
    printed = (await terminal.do("export", "--kind", "source")).out
    assert printed.count("document: sha256:") == 2
    assert (await terminal.do("diff", "-f", "-", given=printed)).code == 0
    await terminal.do("apply", "-f", "out", "--yes", "--tenant", "other", GATEWAY_TENANT="")
    assert (await _sources(gateway, "other")).keys() == before.keys()
    for text in (different.out, manifest, again.out, printed):
        assert secret["MORE_TOKEN"] not in text


async def test_a_plan_has_the_digest_of_a_document(
    terminal: Terminal, gateway: RunningGateway, tmp_path: Path, upstream: RecordingUpstream
) -> None:
    """Ours: a plan holds no document and needs no file; it is applied with the bytes that were planned (CFG-6)."""
    await terminal.create_tenant()
    folder = _folder(tmp_path / "in", upstream)
    (folder / "sources.yaml").write_text(SOURCE.format("pets", "p") + "document: pets.openapi.json\n")
    await terminal.do("plan", "-f", str(folder), "-o", "release.plan")
    stored = (tmp_path / "release.plan").read_text()
    assert ("sha256:" in stored, "openapi.json" in stored, "list_pets" in stored) == (True, False, False)
    (folder / "pets.openapi.json").unlink()
    await terminal.do("apply", "release.plan", "--yes")
    assert (await _sources(gateway))["pets"]["active_version"] == 1
    missing = await terminal.run("diff", "-f", str(folder))
    assert missing.code == ExitCode.USAGE
    assert "pets.openapi.json cannot be read" in missing.err


async def test_faults_of_a_source_have_their_place(
    terminal: Terminal, tmp_path: Path, upstream: RecordingUpstream
) -> None:
    """Ours: a document that cannot be imported is a fault of its manifest, and unknown members are named (CFG-6)."""
    await terminal.create_tenant()
    folder = _folder(tmp_path / "in", upstream)
    (folder / "pets.openapi.json").write_text('{"openapi": "3.1.0"')
    refused = await terminal.run("diff", "-f", str(folder), MORE_TOKEN="x")
    assert refused.code not in {ExitCode.OK, ExitCode.DIFFERENT}
    assert "sources.yaml, document 1" in refused.err
    text = SOURCE.format("a", "a") + "document: pets.openapi.json\ncredentials: {token: {valu: {env: X}}}\n"
    (folder / "sources.yaml").write_text(text)
    unknown = await terminal.run("diff", "-f", str(folder))
    assert "/credentials/token/valu: is unknown" in unknown.err
    (folder / "sources.yaml").write_text(text.replace("{valu: {env: X}}", "{value: literal}"))
    literal = await terminal.run("diff", "-f", str(folder))
    assert "/credentials/token/value: must be {env: NAME}" in literal.err
