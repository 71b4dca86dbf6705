"""Rows of credentials: each secret is bound to the members that name its receivers, and to the version.

If one of them is changed in the database, decryption fails, so the secret is not sent.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import RowMapping, select

from gateway.domain.credentials import Delegation, StoredCredential, members_of_delegation
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import TenantId
from gateway.kinds.credentials import CREDENTIAL
from gateway.kinds.members import Member, members_of
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.sealed_rows import SealedRows
from gateway.store.tables import credentials, secrets, sources

_DELEGATED, _REFERENCE = "delegation", "reference"  # not valid origins, so the context is unambiguous


class SealedCredential(msgspec.Struct, frozen=True):
    """The sealed part of a credential; the value of a login is its password, that of a reference is empty."""

    value: str
    username: str | None = None

    def __repr__(self) -> str:
        return "SealedCredential(…)"


async def open_named(tenant: TenantId, db: Db, sealer: EnvelopeCipher, name: str) -> NamedCredential | None:
    """The credential with this name and its decrypted secret, for requests to upstreams.

    Raises:
        SecretUnreadable: the stored value was changed, or no configured key decrypts it.
    """
    opened = await CREDENTIALS.open(tenant, db, sealer, name, by="name")
    if opened is None:
        return None
    found, secret = opened
    return NamedCredential(
        place=found.place.value,
        credential=Credential(value=secret.value, username=secret.username),
        origins=found.origins,
        field=found.field or "",
        name=found.name,
        id=found.id,
        delegation=found.delegation,
        reference=found.reference,
    )


async def sources_using(tenant: TenantId, db: Db, name: str) -> Sequence[str]:
    """Names of the sources whose security schemes use the credential of this name."""
    is_related = (secrets.c.tenant_id == tenant, secrets.c.credential == name)
    joined = (sources.c.tenant_id == secrets.c.tenant_id) & (sources.c.id == secrets.c.source_id)
    query = select(sources.c.name).distinct().join_from(secrets, sources, joined).where(*is_related)
    return list((await db.execute(query.order_by(sources.c.name))).scalars())


def _context(credential: StoredCredential) -> tuple[str, ...]:
    """The texts to which the value of a credential is bound."""
    row_values = (credential.name, str(credential.version), credential.place.value, credential.field or "")
    delegation = credential.delegation
    # guard: delegation-sealed
    more = () if delegation is None else (_DELEGATED, msgspec.json.encode(delegation, order="sorted").decode())
    outside = () if credential.reference is None else (_REFERENCE, str(credential.reference))  # guard: reference-sealed
    return ("credential", credential.id, *row_values, *credential.origins, *more, *outside)


def _write_delegation(credential: StoredCredential) -> object:
    return None if credential.delegation is None else msgspec.to_builtins(credential.delegation)


def _read_member(member: Member, row: RowMapping) -> object:
    """The value of a member without a column, which follows from the stored delegation."""
    delegation: Any = Delegation
    terms = None if row["delegation"] is None else msgspec.convert(row["delegation"], delegation)
    return members_of_delegation(terms).get(member.name, member.default)


_OF_DELEGATION = [one for one in members_of(StoredCredential) if one.name not in credentials.c and not one.is_secret]
CREDENTIALS = SealedRows(
    CREDENTIAL,
    RowMapper(
        CREDENTIAL.of,
        credentials,
        copies={"delegation": _write_delegation},
        derived={one.name: partial(_read_member, one) for one in _OF_DELEGATION},
    ),
    secret=SealedCredential,
    context=_context,
)
