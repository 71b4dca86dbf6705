"""The tables of refreshed sources as SQLAlchemy statements use them; migration 0034 defines them."""

from sqlalchemy import Boolean, Column, DateTime, Integer, LargeBinary, Table, Text

from gateway.store.tables import metadata

_timestamp = DateTime(timezone=True)

source_proposals = Table(
    "source_proposals",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("replaces", Integer, nullable=False),
    Column("origin", Text, nullable=False),
    Column("obstacle", Text),
    Column("digest", LargeBinary, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("compilation", LargeBinary, nullable=False),
    Column("review", LargeBinary, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", _timestamp, nullable=False),
)

source_refreshes = Table(
    "source_refreshes",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    Column("url", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("digest", LargeBinary),
    Column("failures", Integer, nullable=False),
    Column("fault", Text),
    Column("checked_at", _timestamp),
    Column("changed_at", _timestamp),
    Column("last_number", Integer, nullable=False),
    Column("refused_digest", LargeBinary),
    Column("reported_digest", LargeBinary),
    Column("leased_until", _timestamp),
    Column("is_wanted", Boolean, nullable=False),
)

uploaded_documents = Table(
    "uploaded_documents",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
    Column("document", LargeBinary, nullable=False),
    Column("is_archive", Boolean, nullable=False),
    Column("expires_at", _timestamp, nullable=False),
)
"""Migration 0054 defines it."""
