"""Request plan of an operation: the part of its HTTP request that does not depend on a call's arguments.

A plan is compiled once, when a document is imported, and stored with its operation. A call does not read the document.
"""

from dataclasses import dataclass
from enum import StrEnum


class Location(StrEnum):
    """Location of an OpenAPI parameter; `querystring` is the whole query (OpenAPI 3.2)."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    COOKIE = "cookie"
    QUERYSTRING = "querystring"


class Style(StrEnum):
    """Serialization style of a value (OpenAPI 3.x Style Values)."""

    SIMPLE = "simple"
    LABEL = "label"
    MATRIX = "matrix"
    FORM = "form"
    SPACE = "spaceDelimited"
    PIPE = "pipeDelimited"
    TAB = "tabDelimited"
    DEEP_OBJECT = "deepObject"
    COOKIE = "cookie"


class BodyKind(StrEnum):
    """Encoding of the `body` argument."""

    JSON = "json"
    JSON_LINES = "jsonLines"
    FORM = "form"
    MULTIPART = "multipart"
    TEXT = "text"
    BYTES = "bytes"
    XML = "xml"


class SchemeKind(StrEnum):
    """Kind of a security scheme, with the position of an API key in the request."""

    API_KEY_HEADER = "apiKey:header"
    API_KEY_QUERY = "apiKey:query"
    API_KEY_COOKIE = "apiKey:cookie"
    API_KEY_PATH = "apiKey:path"
    BASIC = "http:basic"
    BEARER = "http:bearer"
    HTTP = "http:other"
    CLIENT_CREDENTIALS = "oauth2:clientCredentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """Serialization of one property of a form or multipart body.

    In a multipart body a field is one part, and a list is one part per member. `style` applies to a part only if
    `is_styled`. Otherwise `media_type`, media types and ranges separated by commas, selects the encoding.

    If the multipart body is an array, fields without a name describe its members, in order. The last field applies to
    all further members.
    """

    name: str
    style: Style = Style.FORM
    explode: bool = True
    allow_reserved: bool = False
    media_type: str | None = None
    is_file: bool = False
    is_list: bool = False
    is_styled: bool = False
    is_verbatim: bool = False
    """True if a text value is already encoded in the media type, so it is sent unchanged."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of the part with values that the document fixes."""
    xml: int | None = None
    """Index of the field's node among the XML nodes of the body, if it is written as XML."""
    fields: tuple["FieldPlan", ...] = ()
    """Fields of a part that is itself a body. A nested list has one field without a name per inner level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPlan:
    """One parameter: the tool argument that supplies it, and its serialization."""

    argument: str
    name: str
    location: Location
    style: Style
    explode: bool
    required: bool = False
    allow_reserved: bool = False
    media_type: str | None = None
    """Set for a `content` parameter: the value is serialized in this media type first."""
    fields: tuple[FieldPlan, ...] = ()
    """Serialization of the properties, if the value is serialized as a form."""


class XmlKind(StrEnum):
    """Kind of XML node that a value becomes (OpenAPI 3.2 `nodeType`)."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text"
    CDATA = "cdata"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlNode:
    """Serialization of the values of one schema as XML.

    `members` maps each property to its node and `items` is the node of list members, as indexes into `BodyPlan.xml`, so
    schemas may be recursive. Without `name` the property's name is used.
    """

    kind: XmlKind = XmlKind.ELEMENT
    name: str | None = None
    namespace: str | None = None
    prefix: str | None = None
    is_wrapped: bool = False
    members: tuple[tuple[str, int], ...] = ()
    items: int | None = None
    others: int | None = None
    """The node of undeclared properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPlan:
    """The request body: the argument `body` in one media type."""

    kind: BodyKind
    media_type: str
    required: bool = False
    argument: str = "body"
    takes: tuple[str, ...] = ()
    """JSON types that this media type accepts, if several media types are offered; empty means any."""
    fields: tuple[FieldPlan, ...] = ()
    root: str | None = None
    """Name of the root element of an XML body."""
    xml: tuple[XmlNode, ...] = ()
    """Nodes of an XML body, its root first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemePlan:
    """One security scheme: its name in the document, its kind, and the header, parameter or cookie it fills.

    For other HTTP schemes `field` is the name of the scheme, for a key in the path it is the encoded placeholder in the
    plan's path. An OAuth 2.0 token is requested from `token_url`.
    """

    name: str
    kind: SchemeKind
    field: str = "Authorization"
    token_url: str | None = None
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """The HTTP request of one operation, without the values of its arguments.

    `origin` is scheme, host and port. `path` is the encoded path with `{n}` for parameter n of `parameters`, literal
    braces doubled. `query` is the encoded query of the base URL without `?`. `security` lists alternatives. A call
    applies all schemes of one alternative; an empty alternative allows a call without credentials.
    """

    method: str
    origin: str
    path: str
    query: str = ""
    parameters: tuple[ParameterPlan, ...] = ()
    body: BodyPlan | None = None
    bodies: tuple[BodyPlan, ...] = ()
    """Further media types, selectable by the caller with the argument that `choice` names."""
    choice: str = "content_type"
    accept: str = "application/json, */*;q=0.5"
    security: tuple[tuple[SchemePlan, ...], ...] = ()
    idempotent: bool = False
    timeout_s: float | None = None
    """Time limit of a call in place of the gateway's usual limits; None keeps them."""
