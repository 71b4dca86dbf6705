"""Trails of deleted tenants: the operator reads, exports and verifies them; a new tenant of the slug does not."""

from tests.support.gateway import RunningGateway
from tests.support.servers import execute
from tests.support.stand import Stand


async def test_the_trail_of_a_deleted_tenant_stays_readable(gateway: RunningGateway) -> None:
    """Ours: listed, exported and verified, by slug while that is unambiguous, by id always (OPR-1, SAF-4)."""
    admin = gateway.admin
    first = (await admin.post("/tenants", json={"slug": "gone"})).json()["id"]
    (await admin.delete("/tenants/gone")).raise_for_status()

    by_slug = (await admin.get("/tenants/gone/audit")).raise_for_status().json()["items"]
    by_id = (await admin.get(f"/tenants/{first}/audit?kind=change")).json()["items"]
    verified = (await admin.get("/tenants/gone/audit/verify")).json()
    exported = (await admin.get("/tenants/gone/audit/export")).text
    listed = (await admin.get("/deleted-tenants?slug=gone")).json()["items"]

    assert [entry["action"] for entry in by_slug] == ["tenant.delete", "tenant.create"]
    assert by_slug == by_id
    assert verified["ok"] is True
    assert '"action":"tenant.delete"' in exported
    assert [(one["id"], one["slug"]) for one in listed] == [(first, "gone")]
    assert (await admin.get("/tenants/gone/keys")).status_code == 404
    assert (await admin.get("/tenants/gone/audit/retention")).status_code == 404


async def test_a_deletion_that_was_taken_out_is_found(own_stand: Stand) -> None:
    """Ours: the last change of a deleted tenant is known outside its trail (SAF-4)."""
    admin = own_stand.gateway.admin
    (await admin.post("/tenants", json={"slug": "gone"})).raise_for_status()
    (await admin.delete("/tenants/gone")).raise_for_status()
    await execute(own_stand.database.superuser_url, "delete from audit_entries where action = 'tenant.delete'")

    verified = (await admin.get("/tenants/gone/audit/verify")).json()

    [changes] = [chain for chain in verified["writers"] if chain["writer"] == "catalog"]
    assert (verified["ok"], changes["fault"]["kind"]) == (False, "shortened")


async def test_a_new_tenant_of_the_slug_never_reads_the_old_trail(gateway: RunningGateway) -> None:
    """Ours: the slug names the living tenant; keys read their own trail only; two deleted ones need ids (TEN-5)."""
    admin = gateway.admin
    first = (await admin.post("/tenants", json={"slug": "again"})).json()["id"]
    (await admin.delete("/tenants/again")).raise_for_status()
    second = (await admin.post("/tenants", json={"slug": "again"})).json()["id"]
    key = await gateway.create_key("again", "audit", "admin")
    own = {"authorization": f"Bearer {key}"}

    of_slug = (await admin.get("/tenants/again/audit")).json()["items"]
    assert {entry["action"] for entry in of_slug} == {"tenant.create", "key.create"}
    assert len((await admin.get(f"/tenants/{first}/audit")).json()["items"]) == 2
    for path in (f"/tenants/{first}/audit", f"/tenants/{first}/audit/export", "/deleted-tenants"):
        assert (await admin.get(path, headers=own)).status_code in {403, 404}
    assert first not in (await admin.get("/tenants/again/audit", headers=own)).text.replace(f"/tenants/{first}/", "")

    (await admin.delete("/tenants/again")).raise_for_status()
    ambiguous = await admin.get("/tenants/again/audit")
    assert ambiguous.status_code == 409
    assert first in ambiguous.text
    assert second in ambiguous.text
    assert (await admin.get("/tenants/never/audit")).status_code == 404
    assert (await admin.get("/tenants/ten_never/audit")).status_code == 404
