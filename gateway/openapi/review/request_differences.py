"""Differences of two request plans: the receiver of a call, its credentials, and its serialisation.

The serialisation of an argument that only one plan has is omitted, because the comparison of schemas reports the
argument.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gateway.domain.http.plans import BodyPlan, FieldPlan, ParameterPlan, RequestPlan, SchemePlan
from gateway.domain.json_access import as_object, point
from gateway.domain.updates.source_changes import Difference, DifferenceKind, Impact
from gateway.openapi.review.excerpts import make_difference

_REQUEST = "/request"
_Members = Mapping[str, object]


def compare_requests(old: RequestPlan, new: RequestPlan) -> Iterator[Difference]:
    """Yield the differences between two plans, the sensitive ones first."""
    if old.origin != new.origin:
        yield _breaking(DifferenceKind.HOST, "/origin", old.origin, new.origin)
    for url in sorted(token_urls(new) - token_urls(old)):
        yield _breaking(DifferenceKind.HOST, "/security", None, url)
    if old.security != new.security:
        yield _breaking(DifferenceKind.CREDENTIALS, "/security", _describe(old), _describe(new))
    routes = [f"{plan.method} {_path(plan)}{f'?{plan.query}' if plan.query else ''}" for plan in (old, new)]
    if routes[0] != routes[1]:
        yield _breaking(DifferenceKind.ROUTE, "/path", *routes)
    if old.accept != new.accept:
        yield _breaking(DifferenceKind.RESULT, "/accept", old.accept, new.accept)
    for name in ("choice", "idempotent"):
        if getattr(old, name) != getattr(new, name):
            yield _breaking(DifferenceKind.REQUEST, f"/{name}", getattr(old, name), getattr(new, name))
    yield from _compare("/parameters", _parameters(old), _parameters(new))
    yield from _compare("/bodies", _bodies(old), _bodies(new))


def token_urls(plan: RequestPlan) -> frozenset[str]:
    """Return the URLs that receive client secrets."""
    schemes = (scheme for alternative in plan.security for scheme in alternative)
    return frozenset(scheme.token_url for scheme in schemes if scheme.token_url is not None)


def sources_using(plan: RequestPlan) -> frozenset[str]:
    """Return the security schemes of a plan, as strings."""
    return frozenset(_scheme(scheme) for alternative in plan.security for scheme in alternative)


def _path(plan: RequestPlan) -> str:
    """The path with argument names in place of numbers, because the numbers depend on the order of parameters."""
    path = plan.path
    for index, parameter in enumerate(plan.parameters):
        path = path.replace(f"{{{index}}}", f"{{{parameter.argument}}}")
    return path


def _describe(plan: RequestPlan) -> str:
    alternatives = (" and ".join(map(_scheme, schemes)) or "no credentials" for schemes in plan.security)
    return " or ".join(alternatives) or "no credentials"


def _scheme(scheme: SchemePlan) -> str:
    issuer = f" from {scheme.token_url}" if scheme.token_url else ""
    scopes = f", scopes {' '.join(scheme.scopes)}" if scheme.scopes else ""
    return f"{scheme.name} ({scheme.kind} {scheme.field}{issuer}{scopes})"


def _parameters(plan: RequestPlan) -> _Members:
    return {one.argument: _members_of(one) for one in plan.parameters}


def _bodies(plan: RequestPlan) -> _Members:
    planned = (plan.body, *plan.bodies)
    return {one.media_type: _members_of(one) for one in planned if one is not None}


def _members_of(part: ParameterPlan | BodyPlan) -> _Members:
    """The members of a part of a plan, except `required`, which the schema contains."""
    members: dict[str, object] = msgspec.to_builtins(part)
    return {name: value for name, value in members.items() if name != "required"} | {"fields": _named(part.fields)}


def _named(fields: Sequence[FieldPlan]) -> object:
    """The fields of a form by their names, if these are distinct."""
    named: dict[str, object] = {one.name: {**msgspec.to_builtins(one), "fields": _named(one.fields)} for one in fields}
    return named if len(named) == len(fields) else msgspec.to_builtins(fields)


def _compare(pointer: str, old: _Members, new: _Members) -> Iterator[Difference]:
    """Yield the differences of members that both have."""
    for name, before in old.items():
        after = new.get(name, before)
        position = f"{pointer}{point(name)}"
        inner = as_object(before), as_object(after)
        if inner[0] is not None and inner[1] is not None:
            yield from _compare(position, inner[0], inner[1])
        elif before != after:
            yield _breaking(DifferenceKind.REQUEST, position, before, after)


def _breaking(kind: DifferenceKind, pointer: str, old: object, new: object) -> Difference:
    return make_difference(kind, Impact.BREAKING, f"{_REQUEST}{pointer}", old=old, new=new)
