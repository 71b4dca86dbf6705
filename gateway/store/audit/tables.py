"""The tables of the retention of audit trails and of deleted tenants, as SQLAlchemy statements use them."""

from sqlalchemy import BigInteger, Column, DateTime, Integer, LargeBinary, Table, Text

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

deleted_tenants = Table(
    "deleted_tenants",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("slug", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("deleted_at", DateTime(timezone=True), nullable=False),
)
