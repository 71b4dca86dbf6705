"""How one operation becomes one HTTP request: everything about it that does not depend on a call's arguments.

A plan is made once, when a document is imported, and stored with its operation; a call reads nothing of the document.
"""

from dataclasses import dataclass
from enum import StrEnum


class Location(StrEnum):
    """Where OpenAPI puts a parameter; `querystring` is the whole query (OpenAPI 3.2)."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    COOKIE = "cookie"
    QUERYSTRING = "querystring"


class Style(StrEnum):
    """How a value is written out (OpenAPI 3.x Style Values)."""

    SIMPLE = "simple"
    LABEL = "label"
    MATRIX = "matrix"
    FORM = "form"
    SPACE = "spaceDelimited"
    PIPE = "pipeDelimited"
    TAB = "tabDelimited"
    DEEP_OBJECT = "deepObject"


class BodyKind(StrEnum):
    """How the `body` argument becomes bytes."""

    JSON = "json"
    FORM = "form"
    MULTIPART = "multipart"
    TEXT = "text"
    BYTES = "bytes"
    XML = "xml"


class SchemeKind(StrEnum):
    """How a security scheme puts its credential on the request."""

    API_KEY_HEADER = "apiKey:header"
    API_KEY_QUERY = "apiKey:query"
    API_KEY_COOKIE = "apiKey:cookie"
    BASIC = "http:basic"
    BEARER = "http:bearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPlan:
    """One parameter: the tool argument that feeds it and the form it takes on the wire."""

    argument: str
    name: str
    location: Location
    style: Style
    explode: bool
    required: bool = False
    allow_reserved: bool = False
    media_type: str | None = None
    """Set for a `content` parameter: the value is serialised in this media type first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """How one property of a form or multipart body is written when it differs from the default."""

    name: str
    style: Style = Style.FORM
    explode: bool = True
    allow_reserved: bool = False
    media_type: str | None = None
    is_file: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPlan:
    """The request body: the argument `body` in one media type."""

    kind: BodyKind
    media_type: str
    required: bool = False
    argument: str = "body"
    fields: tuple[FieldPlan, ...] = ()
    root: str | None = None
    """The root element of an XML body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemePlan:
    """One security scheme: its name in the document, its kind, and the header, parameter or cookie it fills."""

    name: str
    kind: SchemeKind
    field: str = "Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """One operation, ready to be filled with arguments.

    `origin` is scheme, host and port; `path` is the encoded path with `{n}` standing for parameter n of
    `parameters`, literal braces doubled; `query` is the encoded query of the base URL without `?`;
    `security` lists alternatives, each a set of schemes that must all be applied; an empty alternative means none.
    """

    method: str
    origin: str
    path: str
    query: str = ""
    parameters: tuple[ParameterPlan, ...] = ()
    body: BodyPlan | None = None
    bodies: tuple[BodyPlan, ...] = ()
    """Further media types the caller may choose with the argument `content_type`."""
    accept: str = "application/json, */*;q=0.5"
    security: tuple[tuple[SchemePlan, ...], ...] = ()
    idempotent: bool = False
