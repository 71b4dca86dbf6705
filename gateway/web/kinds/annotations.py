"""Pydantic annotations of declared members: their types in requests, with bounds and checks, and in responses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_origin

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model

from gateway.domain.json_text import decode_object
from gateway.domain.members.markers import Bounds, Check, Form, JsonFormat, Length, Shape
from gateway.domain.members.secret import Secret
from gateway.errors import Fault, InvalidBody
from gateway.kinds.members import (
    REQUIRED,
    Member,
    alternatives,
    cached,
    element_of,
    entries_of,
    is_declared,
    settable,
    shown,
    split,
    stem_of,
    without_none,
)
from gateway.web.models import GIVEN, Absent, BodyModel, CopiedModel, Page, ResponseModel, Time

M = TypeVar("M", bound=BaseModel)


def _decode(value: object) -> object:
    """The JSON object of bytes; None of no bytes."""
    return (decode_object(value) if value else None) if isinstance(value, bytes) else value


_JsonShown = Annotated[Mapping[str, object], BeforeValidator(_decode)]
"""A JSON object that is stored as bytes."""
Fields = Mapping[str, tuple[Any, Any]]
"""Arguments of `create_model`: annotation and default of each field."""


def sent_fields(members: Sequence[Member]) -> Fields:
    """The fields of a request that gives an object; members with a default may be absent."""
    return {
        one.name: (
            _described(sent_type(one.hint, one.marks), one, alias=_if_other(one, one.shown_name)),
            _default(one),
        )
        for one in members
    }


def changed_fields(members: Sequence[Member]) -> Fields:
    """The fields of a request that changes an object; every one may be absent, and null only where it may be null."""
    found: dict[str, tuple[Any, Any]] = {}
    for one in members:
        hint = _changed_type(one)
        found[one.name] = (_described(hint if one.is_nullable else _annotated(hint | Absent, [GIVEN]), one), None)
    return found


def shown_fields(members: Sequence[Member]) -> Fields:
    """The fields of a response."""
    return {
        one.shown_name: (_described(_shown_type_of(one), one, read_as=_if_other(one, one.name)), ...) for one in members
    }


def _if_other(one: Member, name: str) -> str | None:
    """The name, if the member has another one outside."""
    return None if one.shown_name == one.name else name


def _shown_type_of(one: Member) -> Any:
    found = shown_type(without_none(one.hint) if Shape.FILLED in one.marks else one.hint)
    return Annotated[found | None, BeforeValidator(_decode)] if Shape.OWN in one.marks else found


def sent_type(hint: Any, marks: Sequence[object] = ()) -> Any:
    """The type of a value in a request: lists and models instead of tuples and dataclasses, with bounds and checks."""
    bare, inner = split(hint)
    marks = (*inner, *marks)
    if _is_optional(bare):
        return sent_type(without_none(bare), marks) | None
    element = element_of(bare)
    if element is not None:
        return _annotated(_of(list, sent_type(element)), _constraints(marks, is_list=True))
    entries = entries_of(bare)
    if entries is not None:
        name, value = map(sent_type, entries)
        return _annotated(_of(dict, (name, value)), _constraints(marks, is_list=True))
    if bare is Secret:
        hidden = Field(json_schema_extra={"writeOnly": True})
        return _annotated(str, [hidden, *_constraints(marks, is_list=False)])
    if is_declared(bare):
        return sent_model(bare)
    if bare is bytes:
        return dict[str, object]
    if bare is datetime:
        return Time
    if len(alternatives(bare)) > 1:
        return _union(sent_type(each) for each in alternatives(bare))
    found: Any = _annotated(bare, _constraints(marks, is_list=False))
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return Annotated[bare, Field(strict=False)]
    is_switched_off = any(isinstance(mark, Bounds) and mark.or_zero for mark in marks)
    return Literal[0] | found if is_switched_off else found


def shown_type(hint: Any) -> Any:
    """The type of a value in a response."""
    bare, _ = split(hint)
    if _is_optional(bare):
        return shown_type(without_none(bare)) | None
    element = element_of(bare)
    if element is not None:
        found = _of(Sequence, shown_type(element))
        return Annotated[found, BeforeValidator(sorted)] if get_origin(bare) is frozenset else found
    entries = entries_of(bare)
    if entries is not None:
        return _of(Mapping, tuple(map(shown_type, entries)))
    if bare is Secret:  # guard: secret-shown-nowhere
        raise TypeError("no response has a secret")
    if len(alternatives(bare)) > 1:
        return _union(shown_type(each) for each in alternatives(bare))
    if bare is bytes:
        return _JsonShown
    return shown_model(bare) if is_declared(bare) else bare


@cached
def sent_model(of: Any) -> type[BodyModel]:
    """The model of an object within a request."""
    return make_model(f"{of.__name__}Sent", BodyModel, of.__doc__ or "", sent_fields(settable(of)))


@cached
def changed_model(of: Any) -> type[BodyModel]:
    """The model of changes of an object within a request."""
    return make_model(f"{of.__name__}Changed", BodyModel, of.__doc__ or "", changed_fields(settable(of)))


@cached
def shown_model(of: Any, ending: str = "Shown") -> type[CopiedModel]:
    """The model of an object within a response; `ending` is the last part of its name."""
    return make_model(f"{stem_of(of)}{ending}", CopiedModel, of.__doc__ or "", shown_fields(shown(of)))


def merged(current: Any, sent: object, hint: Any, pointer: str = "") -> Any:
    """The value of a member that a request sent: tuples and dataclasses, merged into the current value (RFC 7396).

    Raises:
        InvalidBody: there is no current value, and the changes do not describe a whole one.
    """
    bare, _ = split(hint)
    if sent is None:
        return None
    bare = without_none(bare)
    if isinstance(sent, str) and split(bare)[0] is Secret:
        return Secret(sent)
    element = next((found for each in alternatives(bare) if (found := element_of(split(each)[0])) is not None), None)
    if element is not None and isinstance(sent, list):
        collect = frozenset[Any] if get_origin(bare) is frozenset else tuple[Any, ...]
        return collect(merged(None, each, element) for each in cast("Sequence[object]", sent))
    entries = entries_of(bare)
    if entries is not None and isinstance(sent, dict):
        return {name: merged(None, each, entries[1]) for name, each in cast("Mapping[str, object]", sent).items()}
    if bare is bytes:
        return msgspec.json.encode(sent)  # keeps integers of any size
    if not isinstance(sent, BodyModel):
        return sent
    hints = {one.name: one.hint for one in settable(bare)}
    is_change = isinstance(sent, changed_model(bare))
    given = sent.sent() if is_change else {name: getattr(sent, name) for name in hints}
    values = {
        name: merged(getattr(current, name, None), value, hints[name], f"{pointer}/{name}")
        for name, value in given.items()
    }
    if is_change and current is None:
        _refuse_partial(bare, given, pointer)
    changed: Any = replace(current, **values) if is_change and current is not None else bare(**values)
    return changed


def _refuse_partial(of: Any, given: Mapping[str, object], pointer: str) -> None:
    faults = [
        Fault(pointer=f"{pointer}/{one.name}", reason="field required")
        for one in settable(of)
        if one.is_required and one.name not in given
    ]
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)


def _changed_type(one: Member) -> Any:
    bare: Any = without_none(one.hint)
    if not is_declared(bare) or Shape.ONE_VALUE in one.marks:
        return sent_type(one.hint, one.marks)
    return changed_model(bare) | None if one.is_nullable else changed_model(bare)


def make_model(name: str, of: type[M] | tuple[type[M], ...], about: str, fields: Fields) -> type[M]:
    """A model with these fields, derived from `of`, or from several models."""
    members: dict[str, Any] = {**fields}
    made: type[M] = create_model(name, __base__=of, __doc__=about, **members)
    return made


def page_model(name: str, of: type[ResponseModel], about: str) -> type[Page[Any]]:
    """The model of one page of a list of these responses."""
    page: Any = Page
    return make_model(name, page[of], about, {})


def _default(one: Member) -> Any:
    if one.default is REQUIRED:
        return ...
    default: Any = one.default
    if default == {}:
        return Field(default_factory=dict)
    if type(default) is tuple:
        elements: list[Any] = [*default]
        return Field(default_factory=elements.copy)
    declared: Any = type(one.default)
    if is_declared(declared):
        nested = sent_model(declared)
        return Field(default_factory=lambda: nested.model_validate({}))
    return one.default


def _described(hint: Any, one: Member, *, alias: str | None = None, read_as: str | None = None) -> Any:
    field = Field(description=one.about, repr=not one.is_secret, alias=alias, validation_alias=alias or read_as)
    return Annotated[hint, field]


def _of(generic: Any, element: Any) -> Any:
    return generic[element]


def _union(parts: Iterable[Any]) -> Any:
    union: Any = Union
    return union[*parts]


def _is_optional(hint: Any) -> bool:
    return type(None) in alternatives(hint)


def _annotated(hint: Any, marks: Sequence[object]) -> Any:
    annotated: Any = Annotated
    return annotated[hint, *marks] if marks else hint


def _constraints(marks: Sequence[object], *, is_list: bool) -> list[object]:
    bounds: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    checks: list[object] = []
    for mark in marks:
        match mark:
            case Length(least=least, most=most):
                bounds |= {"max_length": most} | ({"min_length": least} if least else {})
            case Bounds(least=least, most=most, is_open=is_open) if not is_list:
                bounds |= {"gt" if is_open else "ge": least, "le": most}
            case Form(pattern=pattern) if not is_list:
                bounds["pattern"] = pattern
            case JsonFormat(name=name):
                extra["format"] = name
            case Shape.DISTINCT:
                extra["uniqueItems"] = True
                checks.append(AfterValidator(_check_distinct))
            case Check(check=check):
                checks.append(AfterValidator(check))
            case _:
                pass
    described = [Field(**bounds, json_schema_extra=extra or None)] if bounds or extra else []
    return [*described, *checks]


def _check_distinct(values: Sequence[object]) -> Sequence[object]:
    if len(set(values)) != len(values):
        raise ValueError("must not have equal entries")
    return values
