"""Projection of JSON responses: the parts that an `http` handler, an override or the argument `_fields` selects."""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.definitions.handlers.specs import ResultSpec
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.errors import HandlerFailed
from gateway.handlers.response_body.limits import MAX_THREAD_BYTES
from gateway.handlers.response_body.projection_tasks import PROJECT, SELECT, without_effect
from gateway.handlers.response_body.reading import JSON, has_many_values
from gateway.handlers.response_body.result_processes import ResultProcesses

_FIRST_ERROR = 300


async def project(
    processes: ResultProcesses, tenant: TenantId, response: UpstreamResponse, spec: ResultSpec
) -> UpstreamResponse:
    """Return the response with its JSON projected as declared; an error and a response without a body are unchanged.

    Raises:
        HandlerFailed: the response is not JSON, has no value at the pointer, or takes too much time or memory.
        ResultBusy: too many large results are in work.
    """
    is_projected = spec.pointer is not None or spec.keep or spec.drop
    if not is_projected or response.status >= _FIRST_ERROR or not response.body:
        return response
    body = await processes.run(tenant, PROJECT, spec, response.body, weight=_weight(response.body))
    return replace(response, body=body, content_type=JSON)


async def select_fields(
    processes: ResultProcesses, tenant: TenantId, response: UpstreamResponse, paths: Sequence[str]
) -> tuple[UpstreamResponse, str | None]:
    """Return the response with the selected parts in their containers, and a note about parts that could not be
    selected.

    An error, and a response that is not a JSON object or list, are unchanged.

    Raises:
        ResultBusy: too many large results are in work.
    """
    if response.status >= _FIRST_ERROR or not response.body:
        return response, None
    spec = ResultSpec(keep=tuple(paths))
    try:
        selected = await processes.run(tenant, SELECT, spec, response.body, weight=_weight(response.body))
    except HandlerFailed as error:
        selected = without_effect(error)
    if selected.body is None:
        return response, selected.note
    return replace(response, body=selected.body, content_type=JSON), selected.note


def _weight(body: bytes) -> int:
    return MAX_THREAD_BYTES + 1 if has_many_values(body) else 0
