"""Credentials as requests describe them, with their secrets."""

from typing import Any

from gateway.domain.credentials import CredentialKind, CredentialLocation, StoredCredential
from gateway.domain.members.secret import Secret
from gateway.kinds.credentials import CREDENTIAL

ORIGIN = "https://api.example"
_SECRETS = {"value", "username", "password"}


def make_credential(name: str = "token", **members: Any) -> StoredCredential:
    """A new credential, by default a bearer token for `ORIGIN`; secrets are given as texts."""
    given = {"place": CredentialLocation.BEARER, "origins": (ORIGIN,), **members}
    given |= {"place": CredentialLocation(given["place"]), "kind": CredentialKind(given.get("kind", "shared"))}
    return CREDENTIAL.make(name, with_secrets(given))


def with_secrets(members: dict[str, Any]) -> dict[str, Any]:
    """The members, with secrets instead of their texts."""
    is_secret = {name for name, value in members.items() if name in _SECRETS and value is not None}
    return {name: Secret(value) if name in is_secret else value for name, value in members.items()}
