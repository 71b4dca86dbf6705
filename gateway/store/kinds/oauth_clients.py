"""Rows of clients of a tenant's authorization server; a client with a digest of a secret is confidential."""

from gateway.domain.tenancy.grants import ClientKind
from gateway.kinds.identity import CLIENT
from gateway.store.identity.tables import oauth_clients
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows

CLIENTS = Rows(
    CLIENT,
    RowMapper(CLIENT.of, oauth_clients, derived={"confidential": lambda row: row["secret"] is not None}),
    counted=[oauth_clients.c.kind == ClientKind.REGISTERED.value],
)
