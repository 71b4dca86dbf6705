"""Credentials that commit 79130e09 sealed: each row is read, its secret opened, and written without a change."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import insert, select

from gateway.catalog.credentials import terms_of
from gateway.domain.identifiers import TenantId
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.kinds.credentials import CREDENTIALS, SealedCredential
from gateway.store.kinds.tenants import TENANTS
from gateway.store.tables import credentials, data_keys
from tests.integration.store.samples import make_tenant

GOLDEN: Mapping[str, Any] = orjson.loads((Path(__file__).parent / "golden_credentials.json").read_bytes())
TENANT = TenantId(GOLDEN["tenant"])
AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
_MADE = {"sealed", "opens_to", "terms", "kind"}


@pytest.fixture
async def filled(store: Store) -> Store:
    """The store with the tenant, the data key and the rows of that commit."""
    async with store.transaction(TENANT) as db:
        await TENANTS.insert(TENANT, db, replace(make_tenant("golden"), id=TENANT))
        key = base64.b64decode(GOLDEN["data_key"])
        await db.execute(insert(data_keys).values(tenant_id=TENANT, id="dek_golden", wrapped=key))
        for row in GOLDEN["credentials"]:
            values = {name: value for name, value in row.items() if name not in _MADE}
            sealed = {"data_key_id": "dek_golden", "sealed": base64.b64decode(row["sealed"])}
            times = {"created_at": AT, "updated_at": AT}
            await db.execute(insert(credentials).values(tenant_id=TENANT, **values, **sealed, **times))
    return store


@pytest.mark.parametrize("row", GOLDEN["credentials"], ids=lambda row: row["name"])
async def test_a_credential_of_a_former_release_opens(filled: Store, row: Mapping[str, Any]) -> None:
    """Ours: sealed values, columns and terms of accounts of 79130e09 stay valid (TEN-4)."""
    cipher = EnvelopeCipher([GOLDEN["secret_key"]])
    async with filled.transaction(TENANT) as db:
        opened = await CREDENTIALS.open(TENANT, db, cipher, row["id"])
        assert opened is not None
        found, secret = opened
        assert secret == SealedCredential(**row["opens_to"])
        assert (found.kind, terms_of(found)) == (row["kind"], row["terms"])
        await CREDENTIALS.write_sealed(TENANT, db, cipher, found, secret=secret)
        columns = [credentials.c[name] for name in row if name not in _MADE]
        written = (await db.execute(select(*columns).where(credentials.c.id == row["id"]))).mappings().one()
        assert dict(written) == {name: value for name, value in row.items() if name not in _MADE}
        assert await CREDENTIALS.open(TENANT, db, cipher, row["id"]) == opened
