"""Found keys: their owners, and their end."""

import re
import zlib
from pathlib import Path

import pytest

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import KEY_PATTERN, mint_key
from tests.behaviour.cli.conftest import environment
from tests.support.commands import run_gateway
from tests.support.gateway import OPERATOR_KEY, RunningGateway
from tests.support.stand import common_stand, gateway, stand

__all__ = ["common_stand", "gateway", "stand"]


async def test_a_found_key_is_named_and_revoked(gateway: RunningGateway, tmp_path: Path) -> None:
    """Ours: tenant and state of every key in a text; only a secret proves a leak (IDN-5, TEN-2)."""
    for slug in ("acme", "globex"):
        await gateway.create_tenant(slug)
    leaked, rotated, safe = [await gateway.create_key(slug) for slug in ("acme", "globex", "acme")]
    path = f"/tenants/globex/keys/key_{rotated.split('_')[2]}"
    (await gateway.admin.post(f"{path}/rotate", json={"overlap_s": 600})).raise_for_status()
    forged = mint_key(key=KeyId(f"key_{safe.split('_')[2]}")).text
    text = f"curl -H 'Authorization: Bearer {leaked}'; {rotated}, {forged} {mint_key().text} {leaked[:-1]}x"
    checked = (await gateway.admin.post("/keys/check", json={"text": text})).raise_for_status()
    found = [(one["match"], one["tenant"], one["key"] and one["key"]["state"]) for one in checked.json()["found"]]
    assert found == [
        ("current", "acme", "active"),
        ("old", "globex", "active"),
        ("other", "acme", "active"),
        ("unknown", None, None),
    ]
    assert leaked.rpartition("_")[2] not in checked.text

    near = environment(GATEWAY_URL=gateway.url, GATEWAY_OPERATOR_KEY=OPERATOR_KEY)
    (tmp_path / "log").write_text(text)
    done = await run_gateway(["key", "check", str(tmp_path / "log"), "--revoke"], folder=tmp_path, variables=near)
    assert (done.code, done.out.count("revoked")) == (0, 2), done
    assert [
        (await gateway.rpc(slug, key, "tools/list")).status_code
        for slug, key in (("acme", leaked), ("globex", rotated))
    ] == [401, 401]
    assert (await gateway.rpc("acme", safe, "tools/list")).status_code == 200
    admin = await gateway.create_key("acme", "admin")
    headers = {"authorization": f"Bearer {admin}"}
    refused = await gateway.http.post("/admin/v1/keys/check", json={"text": leaked}, headers=headers)
    assert refused.status_code == 403


@pytest.mark.parametrize("environment_name", ["live", "test"])
def test_the_published_pattern_finds_keys_and_their_checksum(environment_name: str) -> None:
    """Ours: keys have the form that the page describes for scanners (IDN-5)."""
    page = (Path(__file__).parents[3] / "docs" / "keys.md").read_text()
    assert f"\n{KEY_PATTERN}\n" in page
    text = mint_key(environment_name).text
    assert re.findall(KEY_PATTERN, f"x {text}\n") == [text]
    assert f"{zlib.crc32(text[:-8].encode()):08x}" == text[-8:]
