"""The declaration of a singleton: an object that every tenant has once, without a name, such as its policy."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from gateway.domain.tenancy.keys import Scope

_ADMINS = frozenset({Scope.ADMIN})
OPERATOR: frozenset[Scope] = frozenset()
"""The scopes of a verb that only the operator has."""


class OneOfTenant(Protocol):
    """A singleton: a frozen dataclass with a version and the members that its markers declare."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def version(self) -> int:
        """The number of changes so far, from 1."""
        ...


S = TypeVar("S", bound=OneOfTenant)


@dataclass(frozen=True, kw_only=True, eq=False)
class Singleton(Generic[S]):
    """The facts of one singleton that are not members of its class. Tenants without a row have the class's defaults."""

    of: type[S]
    stem: str
    """The first part of the names of its models, such as `Policy` of `PolicyReplace`."""
    name: str
    """The name in audit actions and entity tags, such as `audit_retention`."""
    path: str
    """Its path below the tenant, such as `audit/retention`."""
    noun: str
    """The name in operations, such as `retention` of `get_retention`."""
    about: str
    """A noun phrase that follows `Show` in summaries."""
    example: Mapping[str, object]
    """Members, for the OpenAPI document and the help."""
    status: type | None = None
    """The class of the status that is computed for each response."""
    readers: frozenset[Scope] = _ADMINS
    writers: frozenset[Scope] = _ADMINS
    """The scopes of keys that may change it; empty for the operator."""
    names_objects: bool = False
    """True if it names objects of kinds, so that manifests apply it after them; others are applied before them."""
    complete: Callable[[S, S, AbstractSet[str]], S] | None = None
    """Returns the wanted object with the members that follow from others, given the object to which the sent members
    were applied, the result, and the paths of the sent members, such as `limits.burst`."""

    @property
    def words(self) -> str:
        """The name for people."""
        return self.name.replace("_", " ")

    @property
    def changed_example(self) -> Mapping[str, object]:
        """The first member of the example."""
        return dict([next(iter(self.example.items()))])
