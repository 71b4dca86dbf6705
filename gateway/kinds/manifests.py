"""Names in manifests: of kinds and members, and the places of members in a request of `apply`."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.json_access import point, tokens_of
from gateway.kinds.identity import MANAGED_ISSUER
from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.singleton import Singleton
from gateway.kinds.singletons import SINGLETONS
from gateway.kinds.sources import MANAGED_SOURCE

API_VERSION = "gateway/v1"
Declared = Kind[Any] | Singleton[Any]
_RENAMED: Mapping[str, str] = {"kind": "type"}
"""The name in manifests of a member whose own name a manifest needs for something else."""


def kind_in_manifests(name: str) -> str:
    """The name of a kind in manifests, such as `webhook-endpoint`."""
    return name.replace("_", "-")


def name_in_manifests(member: str) -> str:
    """The name of a member in manifests: a member `kind` is written `type`."""
    return _RENAMED.get(member, member)


def key_member(kind: Declared) -> str | None:
    """The member that names an object of the kind in manifests; None for a singleton.

    Objects that only their id identifies are named by their name. It must be that of one object, because an id would be
    another one in each installation.
    """
    if isinstance(kind, Singleton):
        return None
    return "name" if kind.keyed == "id" else kind.keyed


def below_object(kind: Declared, pointer: str) -> str:
    """The place of a member within an object of a request, such as `/members/url` for `/url`."""
    if not pointer:
        return ""
    first, *rest = tokens_of(pointer)
    return point("name") if first == key_member(kind) else point("members", first, *rest)


def _all() -> Mapping[str, Declared]:
    every: tuple[Declared, ...] = (*KINDS, MANAGED_SOURCE, MANAGED_ISSUER, *SINGLETONS)
    return {kind_in_manifests(kind.name): kind for kind in every}


MANIFEST_KINDS: Mapping[str, Declared] = _all()
"""All kinds of manifests by name."""
PROTECTED_KINDS = ", ".join(
    kind.plural_words for kind in MANIFEST_KINDS.values() if isinstance(kind, Kind) and kind.is_protected
)
"""The kinds whose pruning needs a permission of its own, for people."""
