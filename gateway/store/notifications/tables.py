"""The tables of outbound webhooks as SQLAlchemy statements use them; migration 0023 defines them."""

from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Integer, LargeBinary, Table, Text

from gateway.store.tables import metadata

_timestamp = DateTime(timezone=True)

webhook_endpoints = Table(
    "webhook_endpoints",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("kinds", ARRAY(Text), nullable=False),
    Column("description", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("notice", Text),
    Column("failures", Integer, nullable=False),
    Column("failing_since", _timestamp),
    Column("held_until", _timestamp),
    Column("version", BigInteger, nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("retires_at", _timestamp),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("secret_at", _timestamp),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("endpoint_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("status", Integer),
    Column("error", Text),
    Column("due_at", _timestamp, nullable=False),
    Column("expires_at", _timestamp, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("attempted_at", _timestamp),
    Column("ended_at", _timestamp),
)
