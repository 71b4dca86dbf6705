"""Steps that only prompts need: checks of string arguments, and the content of resources embedded by URI."""

from collections.abc import Mapping
from typing import cast

from gateway.calls.invocation import Invocation
from gateway.calls.limits import MAX_EMBEDDED, MAX_PROMPT_ARGUMENT_LENGTH
from gateway.domain.refusals import MissingArguments
from gateway.domain.results import Messages
from gateway.errors import ArgumentsInvalid, HandlerFailed, NotFound
from gateway.handlers.binding import BoundPrompt


def check_arguments(bound: BoundPrompt, arguments: Mapping[str, str]) -> None:
    """Refuse unknown, missing and invalid arguments of a prompt.

    Raises:
        MissingArguments: required arguments are missing; the message names them all.
        ArgumentsInvalid: an argument is unknown, not a string, or too long.
    """
    missing = [name for name in bound.arguments if name in bound.required and name not in arguments]
    if missing:  # guard: prompt-missing
        raise MissingArguments(f"missing required arguments: {', '.join(missing)}")
    unknown = sorted(name[:64] for name in arguments.keys() - set(bound.arguments))
    if unknown:
        raise ArgumentsInvalid(f"the prompt has no arguments of these names: {', '.join(unknown[:10])}")
    for name, value in arguments.items():
        if not isinstance(cast("object", value), str):
            raise ArgumentsInvalid(f"the argument {name!r} is not a string")
        if len(value) > MAX_PROMPT_ARGUMENT_LENGTH:
            raise ArgumentsInvalid(f"the argument {name!r} has more than {MAX_PROMPT_ARGUMENT_LENGTH} characters")


async def embed_resources(messages: Messages, call: Invocation) -> Messages:
    """Read each resource that a message embeds by URI alone, as the principal, and return messages with its content.

    Raises:
        HandlerFailed: a resource does not exist for this principal, or more than 16 are embedded.
        GatewayError: a resource cannot be read.
    """
    found: list[Mapping[str, object]] = []
    embedded = 0
    for message in messages.messages:
        uri = _named(message)
        if uri is None:
            found.append(message)
            continue
        embedded += 1
        if embedded > MAX_EMBEDDED:
            raise HandlerFailed(f"the prompt embeds more than {MAX_EMBEDDED} resources")
        found += await _embed(message, uri, call)
    return Messages(messages=found, description=messages.description)


async def _embed(message: Mapping[str, object], uri: str, call: Invocation) -> list[Mapping[str, object]]:
    """Return one message per content of the resource."""
    try:
        read = await call.read_resource(uri)
    except NotFound:
        raise HandlerFailed(f"the prompt embeds {uri[:256]!r}, which is not a resource of this tenant") from None
    block = cast("Mapping[str, object]", message["content"])
    return [{**message, "content": {**block, "resource": content}} for content in read.contents]


def _named(message: Mapping[str, object]) -> str | None:
    """Return the URI of a resource that the message embeds without content; None if there is none."""
    block = message.get("content") if isinstance(cast("object", message), Mapping) else None
    if not isinstance(block, dict):
        return None
    members = cast("dict[str, object]", block)
    resource = members.get("resource")
    if members.get("type") != "resource" or not isinstance(resource, dict):
        return None
    named = cast("dict[str, object]", resource)
    uri = named.get("uri")
    return uri if isinstance(uri, str) and "text" not in named and "blob" not in named else None
