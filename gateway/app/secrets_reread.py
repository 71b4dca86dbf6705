"""SIGHUP: the secrets that have a file are read again, and used from then on."""

import structlog

from gateway.app.infrastructure import Infrastructure
from gateway.app.secrets import RereadSecrets
from gateway.identity.authenticator import Authenticator

log = structlog.get_logger(__name__)


async def reread_secrets(secrets: RereadSecrets, infrastructure: Infrastructure, credentials: Authenticator) -> None:
    """Read the secrets again. Connections under an older URL are replaced; the log has names, never values."""
    changed = {
        secrets.database_url: secrets.database_url.reread(),
        secrets.redis_url: await infrastructure.bus.reread_url(),
        secrets.operator_key: credentials.operator_keys.reread(),
        **{secret: secret.reread() for secret in secrets.others},
    }
    if changed[secrets.database_url]:
        infrastructure.store.replace_connections()
    log.info(
        "configuration_reread",
        changed=[secret.name for secret, is_changed in changed.items() if is_changed],
        unchanged=[secret.name for secret, is_changed in changed.items() if secret.has_file and not is_changed],
        only_at_start=[*(secret.name for secret in changed if not secret.has_file), *secrets.fixed],
    )
