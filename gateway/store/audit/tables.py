"""The tables of the retention of audit trails as SQLAlchemy statements use them; migration 0024 defines them."""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, Table, Text

from gateway.store.tables import metadata

audit_retention = Table(
    "audit_retention",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("days", Integer),
    Column("version", BigInteger, nullable=False),
    Column("fault", Text),
)

audit_cuts = Table(
    "audit_cuts",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("writer", Text, primary_key=True),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("oldest_us", BigInteger, nullable=False),
    Column("newest_us", BigInteger, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("anchor", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("signer", Text, nullable=False),
    Column("signature", LargeBinary, nullable=False),
)
