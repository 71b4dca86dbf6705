"""Models of request bodies, queries and responses, from which the OpenAPI document is generated.

Unknown fields and parameters of requests are refused; no value is converted to another JSON type.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from gateway.domain.members.formats import PRINTABLE

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")


def _read_time(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("must be a date and time with its offset (RFC 3339), such as 2030-01-31T12:00:00Z")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a date and time that exists") from None


Time = Annotated[datetime, BeforeValidator(_read_time)]
"""A time in a request; its offset is required."""


def _refuse_null(value: object) -> object:
    if value is None:
        raise ValueError("must not be null; leave it out to keep the value")
    return value


Absent = SkipJsonSchema[None]
"""The value of a field that was not sent; a null in the request is refused."""
GIVEN = BeforeValidator(_refuse_null)


Search = Annotated[
    str | Absent,
    Field(
        min_length=1,
        max_length=200,
        pattern=PRINTABLE,
        description="Only items with this text in a name or description, in any letter case; no character is a "
        "wildcard.",
        examples=["invoice"],
    ),
]


class BodyModel(BaseModel):
    """A request body. Unknown fields are refused; no value is converted to another JSON type."""

    # Built on first use, in at most 5 ms: a replica uses few of more than 100 models, which together take 2.5 MB.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True)
    media_types: ClassVar[Sequence[str]] = ("application/json",)
    is_optional: ClassVar[bool] = False
    """True if an absent body is treated as an empty object."""
    whole_bytes: ClassVar[int] = 0
    """Bytes of a body without a document up to which it is decoded as a whole, if more than of other bodies."""

    def sent(self) -> dict[str, Any]:
        """Return the fields that were sent, by name."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class QueryModel(BaseModel):
    """A query string. Unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)  # see above


class NoBody(BodyModel):
    """A request without a body."""

    is_optional = True


class NoQuery(QueryModel):
    """A request without query parameters."""


class PageQuery(QueryModel):
    """The page of a list."""

    limit: Annotated[int, Field(ge=1, le=200, description="The maximum number of items in the response.")] = 50
    cursor: Annotated[
        str | Absent, Field(max_length=3072, description="The `next_cursor` of the previous response.")
    ] = None


class ListQuery(PageQuery):
    """Search and order of a list. An item must pass the search and every filter."""

    search: Search = None


class ResponseModel(BaseModel):
    """A response, which contains only declared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # see `BodyModel`


class CopiedModel(ResponseModel):
    """A response whose fields are attributes of one domain object; a validation alias names a different attribute."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    @classmethod
    def of(cls, copied: object, **more: object) -> Self:
        """Build the response from the attributes of an object, and from `more` fields that it does not have."""
        if not more:
            return cls.model_validate(copied)
        own = {name: field.validation_alias for name, field in cls.model_fields.items() if name not in more}
        values = {name: getattr(copied, alias if isinstance(alias, str) else name) for name, alias in own.items()}
        return cls.model_validate({**values, **more}, from_attributes=True)


S = TypeVar("S", bound=ResponseModel)


class Page(ResponseModel, Generic[S]):
    """One page of a list."""

    items: Annotated[Sequence[S], Field(description="The items of this page.")]
    next_cursor: Annotated[str | None, Field(description="The cursor of the next page; null on the last page.")]
