"""References to secrets in external stores: the store, the path below the tenant's own prefix, and the field."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from gateway.domain.members.markers import About, Length
from gateway.domain.tenancy.limits import MAX_PATH_LENGTH

_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELD = re.compile(r"[A-Za-z0-9_.-]+")


class SecretStoreKind(StrEnum):
    """Kind of an external store: files, environment variables of the gateway, or a Vault-compatible server."""

    FILE = "file"
    VARIABLE = "variable"
    VAULT = "vault"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """The location of a secret in an external store; the gateway reads it there for each use, and stores no copy.

    The path of a file or of a Vault secret is below the prefix of the tenant. For a variable it is the name.
    """

    store: Annotated[SecretStoreKind, About("`file`, `vault`, or `variable`, to which only the operator may refer.")]
    path: Annotated[
        str,
        Length(least=1, most=MAX_PATH_LENGTH),
        About("The path within the tenant's part of the store, or the name of a variable."),
    ]
    field: Annotated[Annotated[str, Length(most=MAX_PATH_LENGTH)] | None, About("The field of a secret in Vault.")] = (
        None
    )

    def __str__(self) -> str:
        return f"{self.store}:{self.path}" + (f"#{self.field}" if self.field else "")


def fault_of(reference: SecretReference) -> tuple[str, str] | None:
    """Return the malformed member of a reference, and the reason; None if it can be read in principle."""
    form = _NAME if reference.store is SecretStoreKind.VARIABLE else _PATH
    # guard: reference-path-form
    if len(reference.path) > MAX_PATH_LENGTH or not form.fullmatch(reference.path):
        return "path", "must be names of letters, digits, _, - and ., joined by /, none of which begins with a dot"
    if reference.store is not SecretStoreKind.VAULT:
        return None if reference.field is None else ("field", f"a secret of the store {reference.store} has no field")
    if not reference.field or len(reference.field) > MAX_PATH_LENGTH or not _FIELD.fullmatch(reference.field):
        return "field", "required for vault: the name of the field, of letters, digits, _, - and ."
    return None
