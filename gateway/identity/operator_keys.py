"""Keys of the operator: one, or several during a rotation. Each has a name that is derived from it and not secret."""

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping

import structlog

from gateway.domain.tenancy.configured_secret import ConfiguredSecret, as_configured
from gateway.domain.tenancy.principals import Operator
from gateway.errors import BrokenSetting
from gateway.identity.limits import MIN_OPERATOR_KEY_LENGTH

log = structlog.get_logger(__name__)


class OperatorKeys:
    """The accepted keys, which are read again with their file.

    `configured` contains the keys, separated by commas. Audit entries of changes have the name of the key that was
    used, so that the last use of an old key can be seen.
    """

    def __init__(self, configured: str | ConfiguredSecret) -> None:
        """Raises:
        BrokenSetting: a key has fewer than 32 characters.
        """
        self._configured = as_configured(configured)
        self._holders = _read(self._configured.value)
        self.uses = Counter[str](dict.fromkeys(self.names, 0))
        """Authentications by the name of their key."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the accepted keys, in their order."""
        return tuple(key_names(self._configured.value))

    def find(self, token: bytes) -> Operator | None:
        """Return the operator of a token; every key is compared, in the same time."""
        digest, found = hashlib.sha256(token).digest(), None
        for accepted, holder in self._holders.items():
            if hmac.compare_digest(digest, accepted):  # guard: operator-key
                found = holder
        return found

    def reread(self) -> bool:
        """Read the keys again from their file; True if they have changed. Keys that are not allowed change nothing."""
        before = self._configured.value
        if not self._configured.reread():
            return False
        try:
            self._holders = _read(self._configured.value)
        except BrokenSetting as error:
            self._configured.value = before
            log.warning("secret_not_reread", name=self._configured.name, reason=error.message)
            return False
        log.info("operator_keys_reread", names=self.names)
        return True


def _read(configured: str) -> Mapping[bytes, Operator]:
    """The operators by the digests of their keys."""
    keys = configured.split(",")
    if any(len(key) < MIN_OPERATOR_KEY_LENGTH for key in keys):  # guard: operator-key-length
        raise BrokenSetting(
            f"every operator key must have at least {MIN_OPERATOR_KEY_LENGTH} characters; commas separate keys"
        )
    return {hashlib.sha256(key.encode()).digest(): Operator(key=_name_of(key)) for key in keys}


def key_names(configured: str) -> list[str]:
    """Return the names of comma-separated keys, in their order."""
    return [_name_of(key) for key in configured.split(",")]


def _name_of(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=4, person=b"operator key").hexdigest()
