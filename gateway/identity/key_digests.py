"""Digests of API keys under all secret keys: verification of a presented key, and renewal of its stored digest.

Verification needs the secret key under which the digest was made. So after verification, the key is digested again
under the current secret key, and the use log stores the new digest. An unused key keeps its digest.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.domain.tenancy.keys import Key, KeySecret, digest_key
from gateway.errors import BrokenSetting
from gateway.identity.limits import MAX_KEY_SECRETS

NoteUse = Callable[[Key, KeySecret, KeySecret | None], object]

_NO_SECRET = KeySecret(digest=bytes(32))


class KeyDigests:
    """Verifies presented keys; `peppers` maps names of secret keys to peppers, the current one first.

    `note` receives each use of a key: the key, its secret, and the renewed secret to store, if any.
    """

    def __init__(self, peppers: Mapping[str, bytes], note: NoteUse | None = None) -> None:
        if not peppers or not all(peppers.values()):
            raise BrokenSetting("there is no secret key to check API keys with")
        self._peppers = dict(peppers)
        self._note = note
        self.replaces_older = False
        """True once every replica has the current secret key, so that digests under older keys may be replaced."""

    def match(self, text: str, key: Key | None) -> KeySecret | None:
        """Return the secret of `key` whose digest matches the text; None without a match, after the same work."""
        digests = [digest_key(text, pepper) for pepper in self._peppers.values()]
        secrets = () if key is None else key.secrets
        padded = (*secrets, *(_NO_SECRET,) * (MAX_KEY_SECRETS - len(secrets)))  # guard: key-same-work
        found = None
        for secret in padded:
            if sum(hmac.compare_digest(digest, secret.digest) for digest in digests) > 0:
                found = secret
        return None if found is _NO_SECRET else found

    def note_use(self, key: Key, secret: KeySecret, text: str | None = None) -> None:
        """Record a use of a key; `text` is the presented key if it was just verified."""
        if self._note is not None and key.issuer is None:
            self._note(key, secret, None if text is None else self._renew(text, secret))

    def _renew(self, text: str, secret: KeySecret) -> KeySecret | None:
        """Return the secret with renewed digest and key name; None if both are current.

        Without `replaces_older`, only a missing name is filled in.
        """
        current, pepper = next(iter(self._peppers.items()))
        if secret.pepper == current or (secret.pepper is not None and not self.replaces_older):
            return None
        if self.replaces_older:
            return replace(secret, digest=digest_key(text, pepper), pepper=current)
        made_by = (name for name, pepper in self._peppers.items() if digest_key(text, pepper) == secret.digest)
        return replace(secret, pepper=next(made_by))
