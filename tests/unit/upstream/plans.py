"""Short ways to write request plans in tests."""

from collections.abc import Sequence

from gateway.domain.http.plans import BodyKind, BodyPlan, FieldPlan, Location, ParameterPlan, RequestPlan, Style
from gateway.domain.http.requests import UpstreamRequest
from gateway.upstream.serialize.request_builder import RequestBuilder

ORIGIN = "https://api.example.com"

_STYLES = {
    Location.PATH: Style.SIMPLE,
    Location.QUERY: Style.FORM,
    Location.HEADER: Style.SIMPLE,
    Location.COOKIE: Style.FORM,
    Location.QUERYSTRING: Style.FORM,
}


def parameter(
    location: Location,
    name: str = "color",
    *,
    style: Style | None = None,
    explode: bool = False,
    required: bool = False,
    media_type: str | None = None,
) -> ParameterPlan:
    """A parameter whose argument has its own name."""
    return ParameterPlan(
        argument=name,
        name=name,
        location=location,
        style=style or _STYLES[location],
        explode=explode,
        required=required or location is Location.PATH,
        media_type=media_type,
    )


def plan(
    *parameters: ParameterPlan,
    path: str = "/x",
    method: str = "GET",
    query: str = "",
    body: BodyPlan | None = None,
    bodies: Sequence[BodyPlan] = (),
) -> RequestPlan:
    """An operation with these parameters."""
    return RequestPlan(
        method=method,
        origin=ORIGIN,
        path=path,
        query=query,
        parameters=parameters,
        body=body,
        bodies=tuple(bodies),
        idempotent=method in {"GET", "HEAD", "PUT", "DELETE"},
    )


def sent(made: RequestPlan, **arguments: object) -> UpstreamRequest:
    """The request that these arguments make."""
    return RequestBuilder(made).build(arguments)


def target(made: RequestPlan, **arguments: object) -> str:
    """Path and query of the request that these arguments make."""
    return sent(made, **arguments).url.removeprefix(ORIGIN)


def header(request: UpstreamRequest, name: str) -> str | None:
    """The value of one header."""
    return next((value for held, value in request.headers if held.lower() == name.lower()), None)


def body_plan(
    kind: BodyKind = BodyKind.JSON,
    media_type: str = "application/json",
    *,
    required: bool = True,
    fields: Sequence[FieldPlan] = (),
) -> BodyPlan:
    """A request body."""
    return BodyPlan(kind=kind, media_type=media_type, required=required, fields=tuple(fields))
