"""The table of issuers as SQLAlchemy statements use it; migration 0027 defines it."""

from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from gateway.store.tables import metadata

_timestamp = DateTime(timezone=True)

issuers = Table(
    "issuers",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("jwks_url", Text, nullable=False),
    Column("audiences", ARRAY(Text), nullable=False),
    Column("algorithms", ARRAY(Text), nullable=False),
    Column("subject_claim", Text, nullable=False),
    Column("groups_claim", Text, nullable=False),
    Column("rules", JSONB, nullable=False),
    Column("max_lifetime_s", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)
