"""Rows of kinds with a secret: encrypted beside the members, and bound to some of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import RowMapping, and_, select
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.kinds.kind import Kind, T
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys

S = TypeVar("S")
"""The class of a secret: no member of the object, so that no response, export or trail can hold it."""


class SealedRows(Rows[T], Generic[T, S]):
    """The rows of one kind with secrets of the class `secret`.

    `context` returns the texts to which a secret is bound: if one of them is changed in the database, decryption fails.
    """

    def __init__(
        self, kind: Kind[T], mapper: RowMapper[T], *, secret: type[S], context: Callable[[T], tuple[str, ...]]
    ) -> None:
        super().__init__(kind, mapper)
        self._context = context
        self._decode = msgspec.json.Decoder(secret).decode

    async def insert_sealed(self, tenant: TenantId, db: Db, sealer: EnvelopeCipher, new: T, *, secret: S) -> None:
        """Add an object with its secret.

        Raises:
            NameTaken: the tenant has an object of this kind and name.
            NotFound: there is no such tenant.
        """
        values = {**self._new_values(new), **await self._seal(tenant, db, sealer, new, secret=secret)}
        await db.execute(insert_into(self.table).values(tenant_id=tenant, **values))

    async def write_sealed(self, tenant: TenantId, db: Db, sealer: EnvelopeCipher, one: T, *, secret: S) -> None:
        """Store all members with the status and a secret, under the version and time that the object has.

        Raises:
            NotFound: the tenant has no such object.
        """
        sealed = await self._seal(tenant, db, sealer, one, secret=secret)
        await self._update(tenant, db, one.id, {**self._all_values(one), **sealed})

    async def open(
        self, tenant: TenantId, db: Db, sealer: EnvelopeCipher, of: str, *, by: str = "id"
    ) -> tuple[T, S] | None:
        """The object with this id, or other value of the column `by`, and its secret; None if there is no such object.

        Raises:
            SecretUnreadable: the secret was changed, or no configured key decrypts it.
        """
        columns = self.table.c
        of_key = and_(data_keys.c.tenant_id == columns.tenant_id, data_keys.c.id == columns.data_key_id)
        query = select(*columns, data_keys.c.wrapped).join_from(self.table, data_keys, of_key)
        rows = await db.execute(query.where(columns.tenant_id == tenant, columns[by] == of))
        row = rows.mappings().one_or_none()
        if row is None:
            return None
        found = self._mapper.read(row)
        return found, self._decode(sealer.open(tenant, row["wrapped"], row["sealed"], *self._context(found)))

    async def save(self, tenant: TenantId, db: Db, changed: T, *, at: datetime | None = None) -> None:
        """Store the members that admins set, under the next version; the secret stays.

        Raises:
            NotFound: the tenant has no such object.
            ValueError: the secret is bound to a changed member; `write_sealed` stores such a change.
        """
        current = await self.get(tenant, db, changed.id)
        if current is not None and self._context(replace(changed, version=current.version + 1)) != self._context(
            current
        ):
            raise ValueError(f"the secret of this {self.kind.words} is bound to a changed member")
        await super().save(tenant, db, changed, at=at)

    def sealed_context(self, row: RowMapping, _: str) -> tuple[str, ...]:
        """Callback for the rotation of keys: the texts to which the secret of a stored row is bound."""
        return self._context(self._mapper.read(row))

    async def _seal(self, tenant: TenantId, db: Db, sealer: EnvelopeCipher, one: T, *, secret: S) -> dict[str, Any]:
        key_id, wrapped = await tenant_key(tenant, db, sealer)
        sealed = sealer.seal(tenant, wrapped, msgspec.json.encode(secret), *self._context(one))
        return {"data_key_id": key_id, "sealed": sealed}
