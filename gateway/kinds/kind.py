"""The declaration of a kind: names, limits, lists and filters of the objects of one class."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from gateway.domain.identifiers import mint
from gateway.domain.members.formats import NAME
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.members.markers import Shape
from gateway.domain.tenancy.keys import Scope
from gateway.kinds.members import STATUS, settable


class Configured(Protocol):
    """An object of a kind: a frozen dataclass with these members and those that its markers declare."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def id(self) -> str:
        """The id, which never changes."""
        ...

    @property
    def version(self) -> int:
        """The number of changes so far, from 1."""
        ...

    @property
    def created_at(self) -> datetime | None:
        """The time of creation; None for an object that is not stored."""
        ...


T = TypeVar("T", bound=Configured)
L = TypeVar("L")
TIMES = frozenset({"created_at", "updated_at"})
"""The times that the gateway sets; some objects have no time of the last change."""
SHOWN_ONLY = TIMES | {STATUS, "version"}
"""Members of responses that PUT ignores, so that it accepts what GET returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The number of objects that one tenant may have, and the reason for it."""

    most: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter(Generic[L]):
    """A filter of a list: its values, and the value of an object that must equal it."""

    type: type[bool] | type[StrEnum] | type[str]
    about: str
    value: Callable[[L], object]
    most: int = MAX_URL_LENGTH
    """The characters that a text may have."""
    form: str = ""
    """The pattern of a text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind(Generic[T]):
    """The facts of one kind that are not members of its class."""

    of: type[T]
    stem: str
    """The first part of the names of its models, such as `Profile` of `ProfileCreate`."""
    name: str
    """The name in audit actions, operations and owners of names, such as `webhook_endpoint`."""
    plural: str
    """The segment of its paths, such as `webhook-endpoints`."""
    id_prefix: str
    about: str
    """Purpose of an object, in one sentence. It follows the words `a profile:` in summaries."""
    limit: Limit | None
    """None: `check` compares with a limit of the tenant's policy."""
    example: Mapping[str, object]
    """The members of one object with its name, if it has one, for the OpenAPI document and the help."""
    texts: Callable[[T], Iterable[str | None]]
    """The texts that a search reads."""
    form: str = NAME
    """The pattern of names."""
    name_about: str = "Unique in the tenant."
    keyed: str = "name"
    """The member that is unique in the tenant and orders lists: the name, or a member of a kind without unique names,
    which may be the id.
    """
    address: str = "name"
    """The parameter of the paths of objects: `name`, for which an id is accepted too, or `id`; `t` for the tenant."""
    key_in: Sequence[str] = ()
    """The place of the key in the members that admins set, such as `("definition", "name")`, if it is a part of one."""
    key_parameter: str = ""
    """The name of the key in queries, if it has another than the member."""
    is_found_by_key: bool = False
    """True if `?KEY=` at the path of the list addresses one object, for changes and creations too."""
    owner: Callable[[T], str] | None = None
    """Returns the owner of the name of an object for refusals, if that is not the object itself."""
    in_order: Sequence[str] = ()
    """The members by which all objects are sorted where they apply, if not by their key."""
    reserved: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names that no object can have, each with its owner."""
    filters: Mapping[str, ListFilter[T]] = field(default_factory=dict[str, ListFilter[T]])
    sorts: Sequence[str] = ("name", "created_at")
    status: type | None = None
    """The class of a status that is computed for each response; None if the objects have theirs, or none."""
    flat_status: Sequence[str] = ()
    """Members of the status that responses of this release repeat beside it, for clients of the former one."""
    writers: frozenset[Scope] = frozenset({Scope.ADMIN})
    """The scopes of keys that may change objects; empty for the operator."""
    is_operators: bool = False
    """True if the objects are the operator's: no tenant is in the path of their list, and only writers list them.
    Keys of admins may show the tenant that they belong to; other objects belong to the installation.
    """
    generates: str = ""
    """The description of the secret that the gateway generates, which only creation and rotation return."""
    generated_as: str = "secret"
    """The member of responses with this secret."""
    has_secret: Callable[[T], bool] | None = None
    """True for an object for which a secret is generated; None if every object has one."""
    rotation: str = "For a day, both secrets are valid."
    """The effect of a rotation on the previous secret."""
    is_renamed: bool = False
    """True if a change may give another name: no other object names one of the kind."""
    actions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The audit actions of verbs, where they are not `NAME.verb`."""
    has_collection: bool = True
    """False for a kind of which only models, lists and commands follow; its objects are created by hand."""
    is_protected: bool = False
    """True if the removal of an object by the pruning of manifests needs a permission of its own."""
    removes: Sequence[str] = ()
    """The kinds of the objects that are removed with one."""
    refers: Callable[[T], Iterable[tuple[str, str]]] | None = None
    """Returns the kind and name of each object that one refers to in a form that the marker `Names` does not cover."""
    built_in: T | None = None
    """An object that every tenant has; it is not stored and cannot be changed."""

    @property
    def is_tenants(self) -> bool:
        """True for the kind of the tenants themselves."""
        return self.address == "t"

    @property
    def words(self) -> str:
        """The name for people, such as `webhook endpoint`."""
        return self.name.replace("_", " ")

    @property
    def one(self) -> str:
        """The name of one object for people, with its article, such as `an audit sink`."""
        return f"{'an' if self.name[0] in 'aeio' else 'a'} {self.words}"

    @property
    def plural_words(self) -> str:
        """The name of several objects for people."""
        return self.plural.replace("-", " ")

    @property
    def example_address(self) -> str:
        """The name of the example, or an id, for examples of commands."""
        if self.address == "id" and not self.is_found_by_key:
            return f"{self.id_prefix}_0123456789"
        return self.key_sent(self.example)

    @property
    def set_creates(self) -> bool:
        """True if a replacement creates an object that does not exist: requests address objects by their key."""
        return self.address == "name" or self.is_found_by_key

    @property
    def is_named(self) -> bool:
        """True if objects have a name."""
        return self.keyed == "name"

    @property
    def set_example(self) -> Mapping[str, object]:
        """The members of the example that a replacement has: where it creates nothing, without what only a creation
        can choose.
        """
        if self.set_creates:
            return self.example
        fixed = {one.name for one in settable(self.of) if one.setter is not None and not one.is_required}
        return {name: value for name, value in self.example.items() if name not in fixed}

    @property
    def whole_example(self) -> Mapping[str, object]:
        """The members of the body of a replacement: without a name that is in its path."""
        return {name: value for name, value in self.set_example.items() if name != "name" or not self.is_named}

    @property
    def changed_example(self) -> Mapping[str, object]:
        """The first member of the example that can be changed later, and names no receiver of a secret."""
        given = [one for one in settable(self.of) if one.name in self.example and Shape.RECEIVER not in one.marks]
        names = [one.name for one in given if one.setter is None]
        return {name: self.example[name] for name in names[:1]}

    def action(self, verb: str) -> str:
        """The audit action of a verb, such as `profile.create`."""
        return self.actions.get(verb, f"{self.name}.{verb}")

    @property
    def query_key(self) -> str:
        """The name of the key in queries, such as the `sort` of lists."""
        return self.key_parameter or self.keyed

    @property
    def shows_key(self) -> bool:
        """True if the key is neither the id nor a member that admins set by itself."""
        return self.keyed != "id" and self.keyed not in {one.name for one in settable(self.of)}

    def key_of(self, one: T) -> str:
        """The key of an object, such as its name."""
        key: str = getattr(one, self.keyed)
        return key

    def key_sent(self, members: Mapping[str, object]) -> str:
        """The key that the members of a request give; empty if they give none."""
        found: Any = members
        for part in self.key_in or (self.keyed,):
            found = cast("Mapping[str, object]", found).get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, str) else ""

    def owner_of(self, one: T) -> str:
        """The owner of the key of an object, for refusals."""
        return f"{self.name}:{self.key_of(one)}" if self.owner is None else self.owner(one)

    def make(self, key: str, members: Mapping[str, object]) -> T:
        """Return a new object with a new id; `key` is its name, or the other member that is unique, if not the id."""
        build = cast("Callable[..., T]", self.of)
        times = dict.fromkeys(TIMES & self.of.__dataclass_fields__.keys(), datetime.now(UTC))
        return build(**{self.keyed: key, **members, "id": mint(self.id_prefix)}, version=1, **times)
