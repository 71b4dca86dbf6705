"""The tables of approvals, tasks and guardrails as SQLAlchemy statements use them; the migrations define them."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from gateway.store.tables import metadata

_timestamp = DateTime(timezone=True)

approvals = Table(
    "approvals",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),  # digest of requester and call; unique while the state is open
    Column("requester", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("profile", Text),
    Column("action", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("tool_digest", Text, nullable=False),
    Column("policy_version", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("credentials", LargeBinary, nullable=False),  # digest of ids and versions of the stored credentials
    Column("data_key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("correlation_id", Text, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("expires_at", _timestamp, nullable=False),
    Column("decided_by", Text),
    Column("decider_subject", Text),
    Column("decided_at", _timestamp),
    Column("comment", Text, nullable=False),
    Column("started_at", _timestamp),
    Column("ended_at", _timestamp),
    Column("outcome", Text),
    Column("claim", Text),  # random name of the run that holds the lease
    Column("leased_until", _timestamp),
    Column("version", BigInteger, nullable=False),
)

mcp_tasks = Table(
    "mcp_tasks",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("correlation_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
    Column("expires_at", _timestamp, nullable=False),
    Column("holder", Text, nullable=False),  # the run that has the lease; empty while nothing runs
    Column("leased_until", _timestamp, nullable=False),
    Column("has_begun", Boolean, nullable=False),  # an intent was recorded: the call is never run again
    Column("data_key_id", Text, nullable=False),
    Column("call", LargeBinary, nullable=False),
    Column("rounds", LargeBinary, nullable=False),
    Column("outcome", LargeBinary),
    Column("approval", JSONB),  # the approval for which the call waits
)

guardrails = Table(
    "guardrails",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("rule", LargeBinary, nullable=False),
    Column("credential", Text),
    Column("version", BigInteger, nullable=False),
    Column("created_at", _timestamp, nullable=False),
    Column("updated_at", _timestamp, nullable=False),
)
