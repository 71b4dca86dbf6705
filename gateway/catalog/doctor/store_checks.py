"""Doctor checks of PostgreSQL and Redis, including their minimum versions."""

import sys
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import version

from gateway.domain.findings import Finding, failure, fine, list_names, warning
from gateway.errors import GatewayError, Unavailable
from gateway.redis.diagnostics import RedisFacts
from gateway.store.database.diagnostics import DatabaseFacts, RoleFacts
from gateway.store.tables import SCHEMA
from gateway.telemetry.distribution import VERSION

MIN_POSTGRES = 16
MIN_REDIS = (6, 2)
"""The oldest supported versions."""

_MIGRATE = "run `gateway migrate`"
_list_some = partial(list_names, limit=6)


def check_database(found: DatabaseFacts | GatewayError) -> Iterable[Finding]:
    """Findings on PostgreSQL: login, migrations, role, row-level security, grants."""
    if isinstance(found, GatewayError):
        remedy = "start PostgreSQL and check GATEWAY_DATABASE_URL; the other database checks run once it responds"
        return [failure("database", _cause_of(found), remedy)]
    return [_check_login(found), _migrations(found), _role(found), _row_level_security(found), _grants(found)]


def check_redis(found: RedisFacts | GatewayError) -> Iterable[Finding]:
    """Findings on Redis: version, persistence, eviction."""
    if isinstance(found, GatewayError):
        remedy = "start Redis and check GATEWAY_REDIS_URL; the other Redis checks run once it responds"
        return [failure("redis", _cause_of(found), remedy)]
    return [_redis(found), _persistence(found), _memory(found)]


def check_parts(status: str, failing: Mapping[str, str]) -> Finding:
    """Finding on the parts of the running replica that calls need, over the connections that calls use."""
    check = "readiness"
    if not failing:
        return fine(check, "this replica has every part that calls need")
    detail = "; ".join(f"{part}: {reason}" for part, reason in failing.items())
    remedy = "see the table of parts in docs/reliability.md; the log of the replica has the cause"
    return failure(check, f"this replica is {status}: {detail}", remedy)


def check_versions(database: DatabaseFacts | None, redis: RedisFacts | None) -> Finding:
    """Finding with the versions in use; a warning if PostgreSQL is too old."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    parts = [f"gateway {VERSION}", f"Python {python}", f"mcp {version('mcp')}"]
    parts += [f"PostgreSQL {database.version}"] if database is not None else []
    parts += [f"Redis {redis.version}"] if redis is not None else []
    if database is not None and database.major < MIN_POSTGRES:
        return warning("versions", ", ".join(parts), f"upgrade PostgreSQL to {MIN_POSTGRES} or newer")
    return fine("versions", ", ".join(parts))


def _cause_of(error: GatewayError) -> str:
    return error.cause if isinstance(error, Unavailable) else error.message


def _check_login(facts: DatabaseFacts) -> Finding:
    if facts.login_bypasses_isolation:
        detail = f"reached, but the login {facts.login} is a superuser or bypasses row-level security"
        remedy = "log in as gateway_app: an injected statement can reset the role, but not the login"
        return warning("database", detail, remedy)
    if facts.is_read_only:
        detail = f"reached as {facts.login}, but it is {'a standby' if facts.is_standby else 'set read-only'}"
        return failure("database", detail, "point GATEWAY_DATABASE_URL at the primary, or permit writes")
    return fine("database", f"reached as {facts.login}")


def _migrations(facts: DatabaseFacts) -> Finding:
    found = facts.revision or "none"
    if facts.missing or facts.revision is None or facts.revision < SCHEMA:
        missing_tables = f"; tables are missing: {_list_some(facts.missing)}" if facts.missing else ""
        return failure("migrations", f"at {found}, this gateway needs {SCHEMA}{missing_tables}", _MIGRATE)
    if facts.revision > SCHEMA:
        detail = f"at {found}, which is newer than this gateway ({SCHEMA})"
        return warning("migrations", detail, "finish the rollout of the newer gateway")
    return fine("migrations", f"at {found}, the version of this gateway")


def _role(facts: DatabaseFacts) -> Finding:
    role = facts.role
    if role is None:
        return failure("role", "there is no role gateway_app", _MIGRATE)
    traits = [
        word
        for word, is_so in (
            ("is a superuser", role.is_superuser),
            ("bypasses row-level security", role.bypasses),
            ("may create roles, databases or replicas", role.may_create_roles_or_databases),
        )
        if is_so
    ]
    if traits:
        remedy = "run `alter role gateway_app nosuperuser nobypassrls nocreaterole nocreatedb noreplication`"
        return failure("role", f"gateway_app {' and '.join(traits)}: tenants are not isolated", remedy)
    if role.member_of:
        remedy = f"run `revoke {role.member_of[0]} from gateway_app`, for each of them"
        return failure("role", f"gateway_app may become {_list_some(role.member_of)}", remedy)
    return fine("role", "gateway_app is not a superuser, cannot bypass row-level security, and is in no other role")


def _row_level_security(facts: DatabaseFacts) -> Finding:
    check = "row_level_security"
    if facts.tables_without_rls:
        enable = f"alter table {facts.tables_without_rls[0]} enable row level security"
        return failure(
            check,
            f"off, or without a policy, on {_list_some(facts.tables_without_rls)}: tenants see each other's rows",
            f"run `{enable}` as the owner, for each table; find out who disabled it",
        )
    if facts.tables_not_forcing_rls:
        force = f"alter table {facts.tables_not_forcing_rls[0]} force row level security"
        detail = f"does not bind the owner of {_list_some(facts.tables_not_forcing_rls)}"
        return failure(check, detail, f"run `{force}` as the owner, for each table")
    return fine(check, "enabled and forced on every table that holds tenants' rows")


def _grants(facts: DatabaseFacts) -> Finding:
    role = facts.role
    if role is None:
        return failure("grants", "there is no role gateway_app", _MIGRATE)
    if role.owns:
        remedy = "run `reassign owned by gateway_app to OWNER`, where OWNER is the login that migrates"
        return failure(
            "grants", f"gateway_app owns {_list_some(role.owns)}; an owner can switch row-level security off", remedy
        )
    if role.excess:
        detail = f"gateway_app has unnecessary privileges: {_list_some(role.excess)}"
        return failure("grants", detail, _revocation(role))
    if role.lacks:
        remedy = f"{_MIGRATE}; if nothing is applied, grant the missing privileges"
        return failure("grants", f"gateway_app lacks {_list_some(role.lacks)}", remedy)
    return fine("grants", "gateway_app owns nothing and has only the necessary privileges")


def _revocation(role: RoleFacts) -> str:
    object_name, _, privilege = role.excess[0].partition(": ")
    if privilege == "execute by everybody":
        return f"run `revoke all on function {object_name} from public`, for each function"
    return f"run `revoke {privilege} on {object_name} from gateway_app, public`, for each of them"


def _redis(facts: RedisFacts) -> Finding:
    if facts.number < MIN_REDIS:
        return failure("redis", f"version {facts.version}", f"install Redis {'.'.join(map(str, MIN_REDIS))} or newer")
    if facts.is_replica:
        return failure("redis", "the server is a read-only replica", "point GATEWAY_REDIS_URL at the primary")
    return fine("redis", f"reached, version {facts.version}")


def _persistence(facts: RedisFacts) -> Finding:
    check = "redis_persistence"
    if not facts.keeps_log:
        remedy = "set `appendonly yes` (CONFIG SET appendonly yes, and in redis.conf)"
        return failure(check, "the append-only file is off: a restart of Redis ends every MCP session", remedy)
    if not facts.log_is_written:
        remedy = "check Redis's log and the free space on its disk"
        return failure(check, "the last write of the append-only file failed", remedy)
    return fine(check, "the append-only file is on, and its last write succeeded")


def _memory(facts: RedisFacts) -> Finding:
    check = "redis_memory"
    if facts.eviction == "noeviction":
        return fine(check, "the policy is noeviction")
    remedy = "set `maxmemory-policy noeviction` (CONFIG SET maxmemory-policy noeviction, and in redis.conf)"
    detail = f"the policy is {facts.eviction}: when memory is full, sessions and counters of limits disappear"
    if facts.max_bytes:
        return failure(check, detail, remedy)
    return warning(check, f"{detail}; no memory limit is set yet", remedy)
