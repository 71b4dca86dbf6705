"""References to secrets in external stores, as text: `STORE:PATH`, with `#FIELD` for Vault."""

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject
from gateway.domain.tenancy.secret_references import SecretStoreKind

_FORM = "--reference: must be file:PATH, vault:PATH#FIELD or variable:NAME"


def parse_reference(text: str) -> JsonObject:
    """Parse a reference. The gateway reads the secret from the store for each use, and keeps no copy.

    Raises:
        Failure: the reference is malformed. `env:NAME` and `@FILE` are not references; `--secret` reads them locally.
    """
    if text.startswith(("@", "env:")):
        reason = "`@FILE` and `env:NAME` belong to --secret, which reads them on this machine and stores the value"
        raise Failure(f"{_FORM}; {reason}", ExitCode.USAGE)
    store, colon, place = text.partition(":")
    path, _, field = place.partition("#")
    if not colon or not path or store not in {kind.value for kind in SecretStoreKind}:
        raise Failure(_FORM, ExitCode.USAGE)
    reference: JsonObject = {"store": store, "path": path}
    return reference | ({"field": field} if field else {})
