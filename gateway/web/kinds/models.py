"""Models of one kind: bodies of POST, PUT and PATCH, responses, and the query of its list."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Generic, Literal, cast

from pydantic import AfterValidator, Field, model_validator

from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.members.markers import Setter, Shape, Veil
from gateway.domain.members.values import check_printable
from gateway.errors import Fault, InvalidBody
from gateway.kinds.kind import SHOWN_ONLY, Kind, ListFilter, T
from gateway.kinds.members import STATUS, Member, cached, keeps, members_of, settable, shown, status_of, visible
from gateway.kinds.record import AnyRecord
from gateway.web.kinds.annotations import (
    Fields,
    changed_fields,
    make_model,
    merged,
    page_model,
    sent_fields,
    shown_fields,
    shown_model,
    shown_type,
)
from gateway.web.kinds.kept_members import ReplaceQuery, refuse_losses, sent_paths
from gateway.web.models import GIVEN, Absent, BodyModel, ListQuery, Page, PageQuery, QueryModel, ResponseModel

_ID = "The id; it never changes."
_NAME = "The name; unique in the tenant for objects that a path addresses by name."
_TIMES = {"created_at": "The time of creation.", "updated_at": "The time of the last change."}
_FLAT = Field(json_schema_extra={"deprecated": True})
"""Marks a copy of a member of the status; `deprecated=True` would warn at each read."""
_SORT = "The field that orders the list; a `-` in front reverses the order."


class WholeBody(BodyModel):
    """The body of a PUT. It may have the members of a response: `id` and `name` must be those of the object."""

    ignored: ClassVar[AbstractSet[str]] = SHOWN_ONLY

    @model_validator(mode="before")
    @classmethod
    def drop_shown(cls, sent: object) -> object:
        """Remove the members that only responses have."""
        if not isinstance(sent, dict):
            return sent
        members = cast("dict[str, object]", sent)
        return {name: value for name, value in members.items() if name not in cls.ignored}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindModels(Generic[T]):
    """The models of one kind, and the objects that they describe."""

    kind: Kind[T]
    create: type[BodyModel]
    whole: type[WholeBody]
    change: type[BodyModel]
    shown: type[ResponseModel]
    minted: type[ResponseModel]
    """The response to a creation and to a rotation: with the generated secret, if the kind has one."""
    page: type[Page[Any]]
    query: type[PageQuery]

    def key_of(self, body: BodyModel) -> str:
        """The key that a body gives: its name, or a part of a member. Empty if it gives none."""
        return self.kind.key_sent(body.sent())

    def compose(self, body: BodyModel, key: str, current: T | None, *, may_remove: bool = True) -> T:
        """The object that a POST or PUT describes; an existing one keeps its id, key, times and status.

        Raises:
            InvalidBody: it changes a member that only a creation sets.
            Conflict: it would remove stored members without permission.
        """
        members = settable(self.kind.of)
        values = {one.name: merged(None, getattr(body, one.name), one.hint) for one in members}
        if current is not None:
            _refuse_changed(current, values, [one for one in members if one.name in body.sent()])
            changed = {one.name: values[one.name] for one in members if one.setter is None}
            if not may_remove:
                refuse_losses(members, current, changed, sent_paths(body))
            return replace(current, **changed)
        return self.kind.make(key, values)

    def revise(self, body: BodyModel, current: T) -> T:
        """The object with the members that a PATCH sent."""
        hints = {one.name: one.hint for one in settable(self.kind.of)}
        values = {
            name: merged(getattr(current, name), value, hints[name], f"/{name}") if name in hints else value
            for name, value in body.sent().items()
        }
        return replace(current, **values)

    def show_minted(self, one: T, status: object, secret: str | None) -> ResponseModel:
        """The response to a creation or rotation: with the generated secret, if the kind has one."""
        shown = self.show(one, status)
        if not self.kind.generates:
            return shown
        return self.minted.model_validate({**shown.model_dump(), self.kind.generated_as: secret})

    def show(self, one: T, status: object) -> ResponseModel:
        """The response with one object and its status."""
        flat = self.kind.flat_status
        values = {each: getattr(one, each) for each in self.shown.model_fields if each not in {STATUS, *flat}}
        values |= {each: getattr(status, each) for each in flat}
        values |= {name: veil.show(values[name]) for name, veil in _veils(self.kind.of).items()}
        return self.shown.model_validate(values if status is None else {**values, STATUS: status}, from_attributes=True)


@cached
def _veils(of: Any) -> Mapping[str, Veil]:
    """The members that responses show without secret parts."""
    return {one.name: veil for one in settable(of) if (veil := one.mark(Veil)) is not None}


def _refuse_changed(current: object, values: Mapping[str, object], members: Sequence[Member]) -> None:
    """Refuse another value of a member that only a creation sets.

    Raises:
        InvalidBody: there is one; the faults name the members.
    """
    faults = [
        Fault(pointer=f"/{one.name}", reason=f"is set at creation only; it is {getattr(current, one.name)}")
        for one in members
        if one.setter is Setter.CREATION
        and values[one.name] != getattr(current, one.name)
        and not (values[one.name] is None and Shape.FILLED in one.marks)
    ]
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)


@cached
def models_of(kind: Kind[T]) -> KindModels[T]:
    """Derive the models of a kind."""
    members = settable(kind.of)
    name = Annotated[str, Field(pattern=kind.form, description=kind.name_about)]
    named: Fields = {"name": (name, ...)} if kind.is_named and not kind.key_in else {}
    sent = sent_fields(members)
    changeable = [one for one in members if one.setter is None]
    response = _shown(kind)
    whole = make_model(
        f"{kind.stem}Replace",
        WholeBody,
        f"A complete {kind.words}; absent fields have their default.",
        {**_matching(kind), **sent},
    )
    whole.ignored = SHOWN_ONLY.union(kind.flat_status)
    return KindModels(
        kind=kind,
        create=make_model(f"{kind.stem}Create", BodyModel, f"A new {kind.words}.", {**named, **sent}),
        whole=whole,
        change=make_model(
            f"{kind.stem}Update",
            BodyModel,
            f"Changes of {kind.one}; absent fields keep their value.",
            {**(_renamed(kind) if kind.is_renamed else {}), **changed_fields(changeable)},
        ),
        shown=response,
        minted=_minted(kind, response),
        page=_page(kind, response),
        query=query_model(kind),
    )


def _renamed(kind: Kind[T]) -> Mapping[str, tuple[Any, Any]]:
    name = Annotated[str, Field(pattern=kind.form, description=kind.name_about)]
    return {"name": (Annotated[name | Absent, GIVEN], None)}


def _matching(kind: Kind[T]) -> Mapping[str, tuple[Any, Any]]:
    """The fields of a PUT that must be those of the object in the path, if sent."""
    about = f"If sent, it must be that of the {kind.words} in the path."
    text = Annotated[str | Absent, GIVEN, Field(max_length=MAX_URL_LENGTH, description=about)]
    return dict.fromkeys(matching_members(kind), (text, None))


def matching_members(kind: Kind[Any]) -> Sequence[str]:
    """The members of a response that a PUT must repeat, if it has them: the id, and a key that admins do not set."""
    return ["id", *([kind.keyed] if kind.shows_key else [])]


def _key_about(kind: Kind[Any]) -> str:
    return f"`{'/'.join(kind.key_in)}`, which is unique in the tenant." if kind.key_in else _NAME


def _shown(kind: Kind[T]) -> type[ResponseModel]:
    fields: dict[str, tuple[Any, Any]] = {
        "id": (Annotated[str, Field(description=_ID)], ...),
        **({kind.keyed: (Annotated[str, Field(description=_key_about(kind))], ...)} if kind.shows_key else {}),
        **shown_fields(visible(kind.of)),
    }
    hints = {one.name: one.hint for one in members_of(kind.of)}
    for name, about in _TIMES.items():
        if name in hints:
            fields[name] = (Annotated[shown_type(hints[name]), Field(description=about)], ...)
    status = kind.status or status_of(kind.of)
    if status is not None and shown(status):
        model = shown_model(status)
        fields[STATUS] = (Annotated[model, Field(description="State that the gateway sets; requests ignore it.")], ...)
        copied = shown_fields([one for one in shown(status) if one.name in kind.flat_status])
        fields |= {name: (Annotated[hint, _FLAT], default) for name, (hint, default) in copied.items()}
    return make_model(f"{kind.stem}Shown", ResponseModel, f"{kind.about[:1].upper()}{kind.about[1:]}.", fields)


def _minted(kind: Kind[T], response: type[ResponseModel]) -> type[ResponseModel]:
    if not kind.generates:
        return response
    secret: Any = str if kind.has_secret is None else str | None
    fields = {kind.generated_as: (Annotated[secret, Field(description=kind.generates)], ...)}
    return make_model(f"{kind.stem}Minted", response, f"A {kind.words} with its newest secret.", fields)


def key_query(kind: Kind[Any], *, is_replacement: bool = False) -> type[QueryModel]:
    """The query that addresses one object by its key."""
    about = f"The {kind.keyed.replace('_', ' ')} of the {kind.words}."
    text = Field(min_length=1, max_length=MAX_URL_LENGTH, description=about)
    key = Annotated[str, text, AfterValidator(check_printable)]
    of = ReplaceQuery if is_replacement and keeps(kind.of) else QueryModel
    return make_model(
        f"{kind.stem}KeyQuery", of, f"The {kind.words} that a request addresses.", {kind.query_key: (key, ...)}
    )


def _page(kind: Kind[T], response: type[ResponseModel]) -> type[Page[Any]]:
    return page_model(f"{kind.stem}Page", response, f"One page of a tenant's {kind.plural_words}.")


def query_model(kind: Kind[Any] | AnyRecord) -> type[PageQuery]:
    """The query of a list: search, filters and order."""
    fields: dict[str, tuple[Any, Any]] = {name: (_filter(each), None) for name, each in kind.filters.items()}
    if sorts := [each for name in kind.sorts for each in (name, f"-{name}")]:
        literal: Any = Literal
        sort = Annotated[literal[*sorts] | Absent, Field(description=_SORT, examples=[sorts[-1]])]
        fields["sort"] = (sort, None)
    return make_model(f"{kind.stem}ListQuery", ListQuery, f"Search, filters and order of {kind.plural_words}.", fields)


def _filter(each: ListFilter[Any]) -> Any:
    if each.type is not str:
        return Annotated[each.type | Absent, Field(description=each.about)]
    bounds = Field(min_length=1, max_length=each.most, pattern=each.form or None)
    text = Annotated[str, bounds, AfterValidator(check_printable)]
    return Annotated[text | Absent, Field(description=each.about)]
