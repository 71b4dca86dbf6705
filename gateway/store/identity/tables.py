"""The tables of credentials and people as SQLAlchemy statements use them; the migrations define them."""

from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from gateway.store.tables import metadata

_timestamp = DateTime(timezone=True)

keys = Table(
    "keys",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("subject", Text, nullable=False),
    Column("profile", Text),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("expires_at", _timestamp),
    Column("revoked_at", _timestamp),
    Column("version", BigInteger, nullable=False),
    Column("issuer_id", Text),
    Column("secret_number", Integer, nullable=False),
    Column("pepper", Text),  # the name of the secret key under which the text was digested
    Column("former_digest", LargeBinary),
    Column("former_pepper", Text),
    Column("former_number", Integer),
    Column("former_ends_at", _timestamp),
    Column("last_used_at", _timestamp),
    Column("made_by", ARRAY(Text), nullable=False),
    Column("former_made_by", ARRAY(Text), nullable=False),
    Column("secret_at", _timestamp),
)

operator_keys = Table(
    "operator_keys",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),  # also of the key in `keys` that has the secret
    Column("name", Text, nullable=False),
    Column("members", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

operator_grants = Table(
    "operator_grants",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("members", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

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
    Column("sign_in", JSONB(none_as_null=True)),
    Column("sign_in_secret", LargeBinary),
    Column("introspection", JSONB(none_as_null=True)),
    Column("requires_dpop", Boolean, nullable=False),
    Column("data_key_id", Text),
)

introspection_secrets = Table(
    "introspection_secrets",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),  # of the issuer
    Column("client_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("issuer_id", Text, nullable=False),
    Column("person_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("groups", ARRAY(Text), nullable=False),
    Column("has_all_groups", Boolean, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("requested_scopes", ARRAY(Text), nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("checked_at", _timestamp, nullable=False),
    Column("session_ends_at", _timestamp, nullable=False),
    Column("lease", Text),
    Column("leased_until", _timestamp),
)

access_rules = Table(
    "access_rules",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("default_effect", Text, nullable=False),
    Column("rules", JSONB, nullable=False),
    Column("roles", JSONB, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("redirect_uris", ARRAY(Text), nullable=False),
    Column("secret", LargeBinary),
    Column("created_at", _timestamp, nullable=False),
    Column("used_at", _timestamp),
    Column("version", BigInteger, nullable=False),
    Column("secret_at", _timestamp),
)

consents = Table(
    "consents",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("person_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("client_name", Text, nullable=False),
    Column("redirect_host", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("version", BigInteger, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("owner_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("credential_id", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("state", Text, nullable=False),
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("refreshed_at", _timestamp, nullable=False),
    Column("lease", Text),
    Column("leased_until", _timestamp),
    Column("version", BigInteger, nullable=False),
)

grants = Table(
    "grants",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("person_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("sign_in_id", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("client_name", Text, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("code", LargeBinary, nullable=False),
    Column("code_challenge", Text, nullable=False),
    Column("code_ends_at", _timestamp, nullable=False),
    Column("code_used_at", _timestamp),
    Column("family", LargeBinary),
    Column("refresh", LargeBinary),
    Column("former_refresh", LargeBinary),
    Column("rotated_at", _timestamp),
    Column("created_at", _timestamp, nullable=False),
    Column("used_at", _timestamp),
    Column("idle_ends_at", _timestamp, nullable=False),
    Column("ends_at", _timestamp, nullable=False),
    Column("revoked_at", _timestamp),
    Column("revoked_for", Text),
    Column("thumbprint", Text),
    Column("version", BigInteger, nullable=False),
)
