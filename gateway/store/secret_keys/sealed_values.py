"""Encrypted values of a tenant by table, and their re-encryption under another data key in batches.

A batch is one transaction, and skips rows that another transaction has locked. Each row is locked before it is read,
so a concurrent change is neither lost nor undone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import RowMapping, Table, select, update

from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.errors import SecretUnreadable
from gateway.store import secrets
from gateway.store.calls import approvals, mcp_tasks
from gateway.store.calls.tables import approvals as approvals_table
from gateway.store.calls.tables import mcp_tasks as tasks_table
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.identity import accounts, introspection_secrets, issuers, sign_ins
from gateway.store.identity.tables import accounts as accounts_table
from gateway.store.identity.tables import introspection_secrets as introspection_table
from gateway.store.identity.tables import issuers as issuers_table
from gateway.store.identity.tables import sign_ins as sign_ins_table
from gateway.store.kinds.credentials import CREDENTIALS
from gateway.store.kinds.webhooks import ENDPOINTS, WEBHOOKS
from gateway.store.secrets import TenantKey
from gateway.store.tables import data_keys
from gateway.store.tables import secrets as secrets_table


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table with encrypted columns; `context` returns the encryption context of a column of a row."""

    table: Table
    context: Callable[[RowMapping, str], tuple[str, ...]]
    columns: Sequence[str] = ("sealed",)
    limit: int = 50
    """Maximum number of rows in one batch."""


SEALED_TABLES: Sequence[SealedTable] = (
    SealedTable(secrets_table, secrets.sealed_context),
    SealedTable(CREDENTIALS.table, CREDENTIALS.sealed_context),
    SealedTable(WEBHOOKS.table, WEBHOOKS.sealed_context),
    SealedTable(ENDPOINTS.table, ENDPOINTS.sealed_context),
    SealedTable(approvals_table, lambda row, _: approvals.context_of(row["id"], row["digest"])),
    SealedTable(issuers_table, issuers.sealed_context, columns=("sign_in_secret",)),
    SealedTable(introspection_table, introspection_secrets.sealed_context),
    SealedTable(sign_ins_table, sign_ins.sealed_context),
    SealedTable(accounts_table, accounts.sealed_context),
    SealedTable(tasks_table, mcp_tasks.sealed_context, columns=tuple(mcp_tasks.SEALED), limit=4),
)
"""A test checks that every table with a `data_key_id` is listed."""


class Resealed(NamedTuple):
    """Result of one batch: re-encrypted values, values that no configured key decrypts, and the id of the last row."""

    changed: int
    unreadable: int
    last: str | None


async def reseal_batch(
    tenant: TenantId, db: Db, cipher: EnvelopeCipher, sealed: SealedTable, *, to: TenantKey, after: str
) -> Resealed:
    """Re-encrypt the next rows of a table that are under another data key; `last` is None after the final batch."""
    rows = sealed.table
    joined = (data_keys.c.tenant_id == rows.c.tenant_id) & (data_keys.c.id == rows.c.data_key_id)
    query = select(*rows.c, data_keys.c.wrapped.label("data_key")).join_from(rows, data_keys, joined)
    query = query.where(rows.c.tenant_id == tenant, rows.c.data_key_id != to.id, rows.c.id > after)
    locked = query.order_by(rows.c.id).limit(sealed.limit).with_for_update(of=rows, skip_locked=True)
    found = (await db.execute(locked)).mappings().all()
    if not found:
        return Resealed(0, 0, None)
    resealed, unreadable = await run_in_thread(CATALOG_CHANGES, tenant, _reseal, tenant, cipher, sealed, found, to=to)
    for row_id, values in resealed.items():
        own = (rows.c.tenant_id == tenant, rows.c.id == row_id)
        await db.execute(update(rows).where(*own).values(data_key_id=to.id, **values))
    value_count = sum(len(values) for values in resealed.values())
    return Resealed(value_count, unreadable, str(found[-1]["id"]))


def _reseal(
    tenant: TenantId, cipher: EnvelopeCipher, sealed: SealedTable, rows: Sequence[RowMapping], *, to: TenantKey
) -> tuple[Mapping[str, Mapping[str, bytes]], int]:
    """The re-encrypted values by row id, and the number of unreadable values.

    The values of a row share its data key, so a row with an unreadable value is absent and unchanged.
    """
    resealed: dict[str, Mapping[str, bytes]] = {}
    unreadable = 0
    for row in rows:
        values: dict[str, bytes] = {}
        stored = [column for column in sealed.columns if row[column] is not None]
        for column in stored:
            context = sealed.context(row, column)
            try:
                plain = cipher.open(tenant, row["data_key"], row[column], *context)
            except SecretUnreadable:
                unreadable += 1
                continue
            values[column] = cipher.seal(tenant, to.wrapped, plain, *context)
        if len(values) == len(stored):
            resealed[row["id"]] = values
    return resealed, unreadable
