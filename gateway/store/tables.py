"""The tables as SQLAlchemy statements use them; the migrations define them, and a test compares the two."""

from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Double, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "0058"
"""The revision of these tables, which the code requires; a test compares it with the newest migration."""

metadata = MetaData()

_timestamp = DateTime(timezone=True)

tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("slug", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("created_by", Text),
)

sources = Table(
    "sources",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("base_url", Text),
    Column("prefix", Text),
    Column("expose", Text, nullable=False),
    Column("url", Text),
    Column("active_version", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("include", JSONB, nullable=False),
    Column("exclude", JSONB, nullable=False),
    Column("output_schemas", Boolean, nullable=False),
    Column("refresh_policy", Text, nullable=False),
    Column("refresh_interval_s", Integer),
    Column("parameters", JSONB, nullable=False),
    Column("timeout_s", Double),
)

source_versions = Table(
    "source_versions",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("document", LargeBinary, nullable=False),
    Column("report", LargeBinary, nullable=False),
    Column("outline", LargeBinary),
    Column("created_at", _timestamp, nullable=False),
    Column("digest", LargeBinary),
    Column("tools", Integer),
    Column("origin", Text),
    Column("restored", Integer),
)

operations = Table(
    "operations",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("source_id", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("operation_id", Text),
    Column("tool", Text, nullable=False),
    Column("definition", LargeBinary, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Column("safety", Text, nullable=False),
    Column("tags", ARRAY(Text), nullable=False),
    Column("input_schema", LargeBinary),  # the full one, if the definition has a shortened one
)

overrides = Table(
    "overrides",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("source_id", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("name", Text),
    Column("body", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

aliases = Table(
    "aliases",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("source_id", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("expires_at", _timestamp, nullable=False),
)

primitives = Table(
    "primitives",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("definition", LargeBinary, nullable=False),
    Column("handler", LargeBinary, nullable=False),
    Column("safety", Text),
    Column("assessed", Text, nullable=False),  # derived by the gateway; `safety` is declared by the tenant
    Column("reasons", ARRAY(Text), nullable=False),
    Column("refers", ARRAY(Text), nullable=False),  # tools, operations and credentials that the handler references
    Column("enabled", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

profiles = Table(
    "profiles",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("rules", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

policies = Table(
    "policies",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("safe", Text, nullable=False),
    Column("moderate", Text, nullable=False),
    Column("dangerous", Text, nullable=False),
    Column("calls_per_second", Double, nullable=False),
    Column("burst", Integer, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("sessions", Integer, nullable=False),
    Column("streams", Integer, nullable=False),
    Column("primitives", Integer, nullable=False),
    Column("http_origins", ARRAY(Text)),
    Column("rules", JSONB, nullable=False),
    Column("recorded_arguments", JSONB, nullable=False),
    Column("version", BigInteger, nullable=False),
)

egress = Table(
    "egress",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("allow", ARRAY(Text), nullable=False),
    Column("version", BigInteger, nullable=False),
)

ceilings = Table(
    "ceilings",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("calls_per_second", Double),
    Column("burst", Integer),
    Column("concurrency", Integer),
    Column("sessions", Integer),
    Column("streams", Integer),
    Column("primitives", Integer),
    Column("admin_bounds", JSONB),
    Column("version", BigInteger, nullable=False),
)

data_keys = Table(
    "data_keys",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("wrapped", LargeBinary, nullable=False),
    Column("created_at", _timestamp, nullable=False),
)

secrets = Table(
    "secrets",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("source_id", Text, nullable=False),
    Column("scheme", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("credential", Text),
)

credentials = Table(
    "credentials",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("origins", ARRAY(Text), nullable=False),
    Column("delegation", JSONB),
    Column("reference", JSONB),
    Column("version", BigInteger, nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("secret_at", _timestamp),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("retires_at", _timestamp),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("secret_at", _timestamp),
)

watches = Table(
    "watches",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("uri", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("credential", Text),
    Column("interval_s", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("digest", LargeBinary),
    Column("failures", Integer, nullable=False),
    Column("fault", Text),
    Column("checked_at", _timestamp),
    Column("changed_at", _timestamp),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

due_work = Table(
    "due_work",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("due_at", _timestamp, nullable=False),
)

live_sources = Table(
    "live_sources",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("settings", JSONB, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("credential", Text),
    Column("caller_credential", Text),
    Column("include", ARRAY(Text), nullable=False),
    Column("exclude", ARRAY(Text), nullable=False),
    Column("safety", JSONB, nullable=False),
    Column("accepts_changes", Boolean, nullable=False),
    Column("expose", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("state", Text, nullable=False),
    Column("attachment", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("since", _timestamp),
    Column("fault", Text),
    Column("failures", Integer, nullable=False),
    Column("retry_at", _timestamp),
    Column("notices", ARRAY(Text), nullable=False),
    Column("can_subscribe", Boolean, nullable=False),
)

live_primitives = Table(
    "live_primitives",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("source_id", Text, primary_key=True),
    Column("family", Text, primary_key=True),
    Column("remote", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("definition", LargeBinary, nullable=False),
    Column("safety", Text, nullable=False),
    Column("reasons", ARRAY(Text), nullable=False),
    Column("digest", Text, nullable=False),
    Column("accepted_digest", Text),
    Column("accepted_definition", LargeBinary),
    Column("is_present", Boolean, nullable=False),
    Column("findings", JSONB, nullable=False),
)

idempotency_records = Table(
    "idempotency_records",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("is_operators", Boolean, nullable=False),  # the request was sent by an operator, not by the tenant
    Column("wrapped", LargeBinary, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("attempt", Text, nullable=False),
    Column("leased_until", _timestamp, nullable=False),
    Column("is_done", Boolean, nullable=False),
    Column("answer", LargeBinary),
    Column("expires_at", _timestamp, nullable=False),
)

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("writer", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", _timestamp, nullable=False),
    Column("kind", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("correlation_id", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("status", Integer),
    Column("duration_us", BigInteger, nullable=False),
    Column("result_bytes", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
    Column("mac", LargeBinary, nullable=False),
)

audit_sinks = Table(
    "audit_sinks",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("credential", Text),
    Column("enabled", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("delivered", BigInteger, nullable=False),
    Column("delivered_at", _timestamp),
    Column("failures", Integer, nullable=False),
    Column("fault", Text),
)

audit_places = Table(
    "audit_places",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("sink_id", Text, primary_key=True),
    Column("writer", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)

audit_heads = Table(
    "audit_heads",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("signer", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("writer", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("mac", LargeBinary, nullable=False),
)

audit_anchors = Table(
    "audit_anchors",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("mac", LargeBinary, nullable=False),
)
