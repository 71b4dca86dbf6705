"""Requests that steps send to the client (elicitation, sampling), and the stored parts of the responses."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.definitions.handlers.specs import AskStep, InputStep, RootsStep, SampleStep
from gateway.errors import HandlerFailed
from gateway.handlers.interfaces import InputRequest

_ACTIONS = frozenset({"accept", "decline", "cancel"})


def to_input_request(step: InputStep, variables: Mapping[str, object]) -> InputRequest:
    """Return the client request of a step, with its templates rendered.

    Raises:
        TemplateFailed: a template exceeded a limit, or a value has an unsupported type.
    """
    match step:
        case AskStep():
            return InputRequest(kind="elicitation", params=_elicitation_params(step, variables))
        case SampleStep():
            return InputRequest(kind="sampling", params=_sampling_params(step, variables))
        case RootsStep():
            return InputRequest(kind="roots", params={})


def read_input_response(step: InputStep, response: Mapping[str, Any]) -> object:
    """Return the part of the client's response that the step stores.

    Raises:
        HandlerFailed: the response does not have the form that the protocol requires.
    """
    match step:
        case AskStep():
            content = response.get("content")
            if response.get("action") not in _ACTIONS or not isinstance(content, dict | None):
                raise _malformed_response()
            return {"action": response["action"], "content": cast("dict[str, Any]", content or {})}
        case SampleStep():
            return dict(response)
        case RootsStep():
            roots = response.get("roots")
            if not isinstance(roots, list):
                raise _malformed_response()
            return cast("list[object]", roots)


def _elicitation_params(step: AskStep, variables: Mapping[str, object]) -> dict[str, object]:
    message = step.message.render(variables)
    if step.url is not None:
        return {"mode": "url", "message": message, "url": step.url.render(variables)}
    return {"message": message, "requestedSchema": step.schema or {"type": "object", "properties": {}}}


def _sampling_params(step: SampleStep, variables: Mapping[str, object]) -> dict[str, object]:
    params: dict[str, object] = {"messages": step.messages.render(variables), "maxTokens": step.max_tokens}
    if step.system_prompt is not None:
        params["systemPrompt"] = step.system_prompt.render(variables)
    if step.temperature is not None:
        params["temperature"] = step.temperature
    return params


def _malformed_response() -> HandlerFailed:
    return HandlerFailed("the client's response does not have the form that the protocol requires")
