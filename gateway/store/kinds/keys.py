"""Rows of a tenant's API keys, beside those of people in the same table."""

from collections.abc import Callable, Mapping
from functools import partial

from sqlalchemy import RowMapping, func, or_

from gateway.domain.tenancy.keys import Key, KeySecret
from gateway.kinds.identity import KEY
from gateway.store.identity.tables import keys
from gateway.store.kinds.row_mapper import SECRET_TIME, RowMapper
from gateway.store.kinds.rows import Rows

IS_VALID = (keys.c.revoked_at.is_(None), or_(keys.c.expires_at.is_(None), keys.c.expires_at > func.now()))
"""The conditions for keys that are neither revoked nor expired."""


def _secret(row: RowMapping) -> KeySecret:
    first = row["created_at"] if row["secret_number"] == 1 else None
    return KeySecret(
        digest=row["digest"],
        pepper=row["pepper"],
        number=row["secret_number"],
        made_by=tuple(row["made_by"]),
        made_at=row.get(SECRET_TIME) or first,
    )


def _former(row: RowMapping) -> KeySecret | None:
    if row["former_digest"] is None:
        return None
    return KeySecret(
        digest=row["former_digest"],
        pepper=row["former_pepper"],
        number=row["former_number"],
        ends_at=row["former_ends_at"],
        made_by=tuple(row["former_made_by"]),
    )


def _of_former(read: Callable[[KeySecret], object], default: object, key: Key) -> object:
    return default if key.former is None else read(key.former)


_SECRETS: Mapping[str, Callable[[Key], object]] = {
    "digest": lambda key: key.secret.digest,
    "pepper": lambda key: key.secret.pepper,
    "secret_number": lambda key: key.secret.number,
    "made_by": lambda key: list(key.secret.made_by),
    "secret_at": lambda key: key.secret.made_at,
    "former_digest": partial(_of_former, lambda secret: secret.digest, None),
    "former_pepper": partial(_of_former, lambda secret: secret.pepper, None),
    "former_number": partial(_of_former, lambda secret: secret.number, None),
    "former_ends_at": partial(_of_former, lambda secret: secret.ends_at, None),
    "former_made_by": partial(_of_former, lambda secret: list(secret.made_by), []),
}
"""The columns of both secrets."""
_NO_PERSON: Mapping[str, None] = {"issuer_id": None}  # guard: person-no-key
KEYS = Rows(
    KEY,
    RowMapper(
        Key,
        keys,
        copies=_SECRETS,
        derived={"secret": _secret, "former": _former},
        fixed=_NO_PERSON,
    ),
    named=IS_VALID,
)
