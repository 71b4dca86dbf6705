"""The declaration of a kind of record: it is listed, shown and acted upon, but no admin writes it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from gateway.kinds.kind import ListFilter
from gateway.kinds.members import stem_of

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, eq=False)
class Record(Generic[R]):
    """The facts of one kind of record that are not members of its class."""

    of: type[R]
    name: str
    """The name in operations, such as `list_grants`, and of the group of commands."""
    plural: str
    """The segment of its paths."""
    about: str
    """The records of the list: `the grants under which tokens were issued`. Follows `List` and `One page of`."""
    one: str
    """One record: `a grant`. Follows `Show`."""
    id_prefix: str
    known_by: Sequence[str]
    """The shown members by which people know a record; each can be written in the place of the id."""
    texts: Callable[[R], Iterable[str | None]]
    """The texts that a search reads."""
    filters: Mapping[str, ListFilter[R]] = field(default_factory=dict[str, ListFilter[R]])
    sorts: Sequence[str] = ("created_at",)
    """The members that order the list, besides the key."""
    keyed: str = "id"
    """The member or property that is unique in the tenant and orders the list."""

    @property
    def stem(self) -> str:
        """The first part of the names of its models."""
        return stem_of(self.of)

    @property
    def plural_words(self) -> str:
        """The name of several records for people."""
        return self.plural.replace("-", " ")


AnyRecord = Record[Any]


def by_text(about: str, value: Callable[[R], object], *, form: str = "") -> ListFilter[R]:
    """A filter by a text of at most 200 characters, as subjects have."""
    return ListFilter(type=str, about=about, value=value, most=200, form=form)


def by_state(states: type[StrEnum], about: str, value: Callable[[R], object]) -> ListFilter[R]:
    """A filter by a state."""
    return ListFilter(type=states, about=about, value=value)
