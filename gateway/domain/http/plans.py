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
    COOKIE = "cookie"


class BodyKind(StrEnum):
    """How the `body` argument becomes bytes."""

    JSON = "json"
    JSON_LINES = "jsonLines"
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
    HTTP = "http:other"
    CLIENT_CREDENTIALS = "oauth2:clientCredentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """How one property of a form or multipart body is written when it differs from the default.

    In a multipart body a field is one part; a list is one part per member. `style` counts there only when `is_styled`;
    otherwise `media_type` says how the part is written: several types and ranges may stand in it, divided by commas.
    The members of an array that is a multipart body of its own are described by fields without a name: in their order,
    the last one for all that follow.
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
    """Whether texts are in the media type already."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of the part whose value the document fixes."""
    xml: int | None = None
    """Where the field is written as XML: its node among those of the body."""
    fields: tuple["FieldPlan", ...] = ()
    """Of a part that is a body of its own, its fields; of a list of lists, one without a name for each level inside."""


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
    fields: tuple[FieldPlan, ...] = ()
    """How the properties of one that is serialised as a form are written."""


class XmlKind(StrEnum):
    """What a value becomes in an XML document (OpenAPI 3.2 `nodeType`)."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text"
    CDATA = "cdata"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlNode:
    """How the values of one schema are written as XML.

    `members` names the node of each property and `items` that of list members, as indexes into the nodes of the body,
    so that schemas may refer to each other in circles. Without `name` a value is called like its property.
    """

    kind: XmlKind = XmlKind.ELEMENT
    name: str | None = None
    namespace: str | None = None
    prefix: str | None = None
    is_wrapped: bool = False
    members: tuple[tuple[str, int], ...] = ()
    items: int | None = None
    others: int | None = None
    """The node of properties that are not declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPlan:
    """The request body: the argument `body` in one media type."""

    kind: BodyKind
    media_type: str
    required: bool = False
    argument: str = "body"
    takes: tuple[str, ...] = ()
    """The JSON types of the values it carries, where several media types are offered; none means any."""
    fields: tuple[FieldPlan, ...] = ()
    root: str | None = None
    """The root element of an XML body."""
    xml: tuple[XmlNode, ...] = ()
    """What an XML body is made of, its root first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemePlan:
    """One security scheme: its name in the document, its kind, and the header, parameter or cookie it fills.

    For other HTTP schemes `field` is the name of the scheme. A token that is fetched comes from `token_url`.
    """

    name: str
    kind: SchemeKind
    field: str = "Authorization"
    token_url: str | None = None
    scopes: tuple[str, ...] = ()


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
    """Further media types the caller may choose with the argument that `choice` names."""
    choice: str = "content_type"
    accept: str = "application/json, */*;q=0.5"
    security: tuple[tuple[SchemePlan, ...], ...] = ()
    idempotent: bool = False
