"""The composition of an operation's parts into a request plan and the arguments that fill it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from gateway.domain.http.plans import BodyKind, Location, ParameterPlan, RequestPlan, Style
from gateway.domain.json_access import Object
from gateway.openapi.document.json_access import clean_text, object_at, quote_text
from gateway.openapi.operation.bodies import Body
from gateway.openapi.operation.descriptions import cut
from gateway.openapi.operation.limits import MAX_ORIGINAL_LENGTH
from gateway.openapi.operation.media_types import accept_header
from gateway.openapi.operation.methods import is_idempotent
from gateway.openapi.operation.names import name_arguments
from gateway.openapi.operation.operations import Operation
from gateway.openapi.operation.parameters import Parameter
from gateway.openapi.operation.paths import PathTemplate, colon_segments, plan_path
from gateway.openapi.operation.schema_assembly import Argument
from gateway.openapi.operation.security import SecurityPlan
from gateway.openapi.operation.servers import Server
from gateway.openapi.schema.examples import Path
from gateway.openapi.schema.translation import Translated

_WHOLE: frozenset[Path] = frozenset(((),))
_TEXT = Translated(schema={"type": "string"})


class OperationParts(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled parts of one operation; `answers` contains its readable success responses."""

    server: Server
    template: PathTemplate
    parameters: Sequence[Parameter]
    body: Body | None
    security: SecurityPlan
    answers: Sequence[Object]


class FittedParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of an operation with those of its path template, the losses, and the notes."""

    parameters: Sequence[Parameter]
    losses: Sequence[str]
    notes: Sequence[str]


def fit_parameters(template: PathTemplate, parameters: Sequence[Parameter]) -> FittedParameters:
    """Move, add and drop parameters according to the path template; a segment `:name` without one is a loss."""
    kept: list[Parameter] = []
    unused: list[str] = []
    for parameter in parameters:
        occurrences = _occurrences(parameter, template)
        kept += occurrences
        if not occurrences:
            unused.append(
                f"the path parameter {quote_text(parameter.plan.name)} is not in the path; the tool has no argument "
                f"for it"
            )
    missing = [item for item in _needed(template) if item.key not in {parameter.key for parameter in kept}]
    notes = [
        f"the {item.plan.location} parameter {quote_text(item.plan.argument)} is not declared; its argument is a string"
        for item in missing
    ]
    literal = [
        f"the path has the segment {quote_text(f':{name}')}, and no path parameter of this name; it is sent as it is"
        for name in colon_segments(template.path)
    ]
    return FittedParameters(parameters=[*kept, *missing], losses=[*unused, *literal], notes=notes)


def _occurrences(parameter: Parameter, template: PathTemplate) -> list[Parameter]:
    """The parameter, once for each of its positions in the template.

    A path parameter becomes a query parameter for each query name whose value it fills. It is dropped if it has no
    position in the template.
    """
    location, name = parameter.key
    if location not in {Location.PATH, Location.QUERY} or (location is Location.PATH and name in template.placeholders):
        return [parameter]
    wanted = [key for key, placeholder in template.pairs.items() if placeholder == name]
    if not wanted:
        return [] if location is Location.PATH else [parameter]
    plan = parameter.plan
    if location is Location.PATH:
        plan = replace(plan, location=Location.QUERY, style=Style.FORM, explode=False)
    return [msgspec.structs.replace(parameter, plan=replace(plan, name=key)) for key in wanted]


def _needed(template: PathTemplate) -> Iterator[Parameter]:
    """The parameters in the template, as text parameters."""
    for name in template.placeholders:
        yield _text_parameter(Location.PATH, name, argument=name)
    for name, placeholder in template.pairs.items():
        yield _text_parameter(Location.QUERY, name, argument=placeholder)
    for name in template.offered:
        yield _text_parameter(Location.QUERY, name, argument=name, is_required=False)


def plan_request(
    operation: Operation, parts: OperationParts, *, timeout_s: float | None = None
) -> tuple[RequestPlan, list[Argument]]:
    """Plan the request and the arguments that a caller passes for it.

    Raises:
        Unusable: the path template cannot be used.
    """
    arguments = name_arguments([(item.plan.location, item.plan.argument) for item in parts.parameters])
    plans = [
        parameter.plan if parameter.plan.argument == argument else replace(parameter.plan, argument=argument)
        for parameter, argument in zip(parts.parameters, arguments, strict=True)
    ]
    indexes = {plan.name: index for index, plan in enumerate(plans) if plan.location is Location.PATH}
    path = plan_path(parts.server, parts.template, indexes)
    others = parts.body.others if parts.body else ()
    choice = _free_name(arguments) if others else "content_type"
    request = RequestPlan(
        method=operation.method,
        origin=parts.server.origin,
        path=path.path,
        query=path.query,
        parameters=tuple(plans),
        body=parts.body.plan if parts.body else None,
        bodies=others,
        choice=choice,
        accept=accept_header(_answer_types(parts.answers)),
        security=parts.security.alternatives,
        idempotent=is_idempotent(operation.method),
        timeout_s=timeout_s,
    )
    return request, [*_arguments(plans, parts), *_choice_argument(request)]


def successes(responses: Object) -> Iterator[object]:
    """Yield the declared success responses; the default response if there is none."""
    fine = [node for status, node in responses.items() if status[:1] == "2"]
    yield from fine or [node for status, node in responses.items() if status == "default"]


def _text_parameter(location: Location, name: str, *, argument: str, is_required: bool = True) -> Parameter:
    style = Style.SIMPLE if location is Location.PATH else Style.FORM
    plan = ParameterPlan(
        argument=argument, name=name, location=location, style=style, explode=False, required=is_required
    )
    return Parameter(plan=plan, translated=_TEXT)


def _arguments(plans: Sequence[ParameterPlan], parts: OperationParts) -> Iterator[Argument]:
    for plan, parameter in zip(plans, parts.parameters, strict=True):
        is_text = plan.media_type is None and plan.style is not Style.DEEP_OBJECT
        yield Argument(
            name=plan.argument,
            translated=parameter.translated,
            is_required=plan.required,
            where=parameter.where,
            texts=_WHOLE if is_text else frozenset(),
            original=None if plan.argument == parameter.plan.argument else _shown(parameter.plan.argument),
        )
    if parts.body is not None:
        body = parts.body
        yield Argument(
            name=body.plan.argument,
            translated=body.translated,
            is_required=body.plan.required,
            where=body.where,
            texts=_text_fields(body),
        )


def _shown(name: str) -> str:
    """The name of a parameter as descriptions show it, between backticks."""
    return cut(clean_text(name).replace("`", "'"), MAX_ORIGINAL_LENGTH)


def _text_fields(body: Body) -> frozenset[Path]:
    """The paths of the fields of a form: their values are sent as text."""
    schema = body.translated.schema
    if body.plan.kind not in {BodyKind.FORM, BodyKind.MULTIPART} or isinstance(schema, bool):
        return frozenset()
    return frozenset(("properties", name) for name in object_at(schema, "properties"))


def _free_name(taken: Sequence[str]) -> str:
    """A free name for the argument that chooses the media type of the body."""
    names = ("content_type", "body_content_type", *(f"content_type_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _choice_argument(request: RequestPlan) -> Iterator[Argument]:
    if request.body is None or not request.bodies:
        return
    schema: dict[str, object] = {
        "type": "string",
        "enum": list(dict.fromkeys(body.media_type for body in (request.body, *request.bodies))),
        "default": request.body.media_type,
        "description": "The media type of the body.",
    }
    yield Argument(name=request.choice, translated=Translated(schema=schema))


def _answer_types(answers: Sequence[Object]) -> Iterator[str]:
    for answer in answers:
        yield from object_at(answer, "content")
