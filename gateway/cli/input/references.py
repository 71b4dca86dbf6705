"""References to secrets in external stores, as text: `STORE:PATH`, with `#FIELD` for Vault."""

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.domain.tenancy.secret_references import SecretStoreKind

_FORM = "must be file:PATH, vault:PATH#FIELD or variable:NAME"


def parse_reference(text: str, option: str = "--reference") -> JsonObject:
    """Parse a reference. The gateway reads the secret from the store for each use, and keeps no copy.

    Raises:
        Failure: the reference is malformed. `env:NAME` and `@FILE` belong to options for secrets.
    """
    if text.startswith(("@", "env:")):
        secret = option.replace("reference", "secret")
        reason = f"`@FILE` and `env:NAME` belong to {secret}, which reads them on this machine and stores the value"
        raise Failure(f"{option}: {_FORM}; {reason}", ExitCode.USAGE)
    store, colon, place = text.partition(":")
    path, _, field = place.partition("#")
    if not colon or not path or store not in {kind.value for kind in SecretStoreKind}:
        raise Failure(f"{option}: {_FORM}", ExitCode.USAGE)
    reference: JsonObject = {"store": store, "path": path}
    return reference | ({"field": field} if field else {})


def write_reference(found: JsonObject) -> str:
    """Return a reference of a response as text."""
    field = text_at(found, "field")
    return f"{text_at(found, 'store')}:{text_at(found, 'path')}" + (f"#{field}" if field else "")
