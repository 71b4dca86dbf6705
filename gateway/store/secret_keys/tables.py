"""The operator's tables as SQLAlchemy statements use them; migration 0031 defines them.

They are visible only in transactions without a tenant.
"""

from sqlalchemy import ARRAY, BigInteger, Column, DateTime, Integer, LargeBinary, MetaData, Table, Text

from gateway.store.tables import metadata as tenants_metadata

metadata = MetaData()

_timestamp = DateTime(timezone=True)

secret_keys = Table(
    "secret_keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("known_since", _timestamp, nullable=False),
    Column("forgotten_at", _timestamp),
    Column("retained", LargeBinary),
)

secret_rotation = Table(
    "secret_rotation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key_name", Text, nullable=False),
    Column("started_at", _timestamp, nullable=False),
    Column("finished_at", _timestamp),
    Column("holder", Text, nullable=False),
    Column("leased_until", _timestamp, nullable=False),
    Column("after_slug", Text, nullable=False),
    Column("tenants_done", Integer, nullable=False),
    Column("values_done", BigInteger, nullable=False),
    Column("unreadable", BigInteger, nullable=False),
    Column("fault", Text),
)

secret_key_holders = Table(
    "secret_key_holders",
    metadata,
    Column("replica", Text, primary_key=True),
    Column("names", ARRAY(Text), nullable=False),
    Column("seen_at", _timestamp, nullable=False),
)

audit_export_keys = Table(
    "audit_export_keys",
    tenants_metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("public", LargeBinary, nullable=False),
)
