"""Recognition of protocol result objects that a Python function returned as plain dictionaries.

Only the names of members, `resultType` and the types of blocks are checked here. The call pipeline checks the other
values. A null member counts as absent, because the SDK serializes absent members as null.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.definitions.contract.contents import BLOCK_FIELDS
from gateway.domain.json_access import as_list, as_object
from gateway.domain.results import ABSENT, Messages, Result
from gateway.errors import HandlerFailed
from gateway.handlers.python.limits import MAX_NULLS_DEPTH

_RESULT = frozenset(("content", "structuredContent", "isError", "_meta", "resultType"))
_CONTENTS = frozenset(("contents", "resultType", "ttlMs", "cacheScope"))  # the gateway sets how long a result is valid
_MESSAGES = frozenset(("messages", "description", "resultType"))
_TOOL_RESULT_MEMBERS = ("content", "isError", "is_error")
_SDK_NAMES = frozenset(("is_error", "structured_content"))
"""Python names under which the SDK's objects are serialized without aliases."""
_COMPLETE = "complete"


def read_result(returned: Mapping[str, object]) -> Result | None:
    """Return the tool result that a mapping represents; None if it is any other JSON object.

    A mapping with `isError: true` and `content` is treated as a result or refused, so it never becomes a success.

    Raises:
        HandlerFailed: the mapping is a result, but has unknown members, a content without a type, or another
            `resultType` than `complete`.
    """
    if returned.keys().isdisjoint(_TOOL_RESULT_MEMBERS):
        return None
    members = _given(returned)
    if not _is_result(members):
        return None
    _refuse_others(members, _RESULT)
    found: dict[str, Any] = members  # untyped: the pipeline checks the values before they are sent
    return Result(
        content=_without_nulls(found.get("content", ()), MAX_NULLS_DEPTH),
        structured=found.get("structuredContent", ABSENT),
        is_error=found.get("isError", False),
        meta=found.get("_meta"),
    )


def read_contents(returned: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    """Return the contents of a resource: the member `contents`, or the mapping as the only content.

    Raises:
        HandlerFailed: the mapping is neither, or has unknown members beside `contents`.
    """
    members = _given(returned)
    if "contents" in members:
        _refuse_others(members, _CONTENTS)
        return _listed(members["contents"])
    if "text" in members or "blob" in members:
        return _listed([members])
    raise refuse(returned)


def read_messages(returned: Mapping[str, object] | Sequence[object]) -> Messages:
    """Return the messages of a prompt: a list, or a mapping with `messages` and an optional `description`.

    Raises:
        HandlerFailed: there is no list of messages, or there are unknown members.
    """
    members = _given(returned if isinstance(returned, Mapping) else {"messages": returned})
    if "messages" not in members:
        raise refuse(returned)
    _refuse_others(members, _MESSAGES)
    description: Any = members.get("description")  # untyped, like the result's members above
    return Messages(messages=_listed(members["messages"]), description=description)


def refuse(returned: object) -> HandlerFailed:
    """Return the error for a value that functions of the family must not return."""
    error = HandlerFailed(
        "the handler returned a value that is not a valid result of its family: a tool returns a string, an object or a"
        " result; a resource a string, bytes or contents; a prompt a string or messages"
    )
    error.add_note(f"it returned {type(returned).__name__}")  # for the log, not for the client
    return error


def _is_result(members: Mapping[str, object]) -> bool:
    """True if a mapping is a result: it has only result members and content blocks, or it is an error result.

    Raises:
        HandlerFailed: it has only result members, but an element of its content has no type.
    """
    is_closed = members.keys() <= _RESULT | _SDK_NAMES
    if any(members.get(name, False) is not False for name in ("isError", "is_error")):
        return "content" in members or is_closed
    blocks = as_list(members.get("content"))
    has_content = blocks is not None and (
        bool(blocks) or len(members) > 1
    )  # an empty page of data can be {"content": []}
    if not (has_content and is_closed):
        return False
    kinds = [_kind_of(block) for block in blocks or ()]
    if None in kinds:
        raise HandlerFailed(
            f"the handler returned /content/{kinds.index(None)} without a `type`: content is a list of blocks with a"
            " type; return any other list under another name, or with `json(…)`"
        )
    return all(kind in BLOCK_FIELDS for kind in kinds)


def _kind_of(block: object) -> str | None:
    members = as_object(block)
    kind = None if members is None else members.get("type")
    return kind if isinstance(kind, str) else None


def _refuse_others(members: Mapping[str, object], known: frozenset[str]) -> None:
    """Refuse unknown members, which would be lost, and an intermediate result.

    Raises:
        HandlerFailed: there are such members, or `resultType` is not `complete`.
    """
    others = sorted(str(name) for name in members.keys() - known)
    if others or members.get("resultType", _COMPLETE) != _COMPLETE:
        error = HandlerFailed("the handler's result does not have the form that the protocol requires")
        known_here = ", ".join(sorted(known))
        error.add_note(f"it returned {', '.join(others) or 'another resultType'}; known are {known_here}")
        raise error


def _given(members: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


def _listed(found: object) -> Sequence[Mapping[str, object]]:
    if as_list(found) is None:
        raise refuse(found)
    listed: Sequence[Mapping[str, object]] = _without_nulls(found, MAX_NULLS_DEPTH)
    return listed


def _without_nulls(value: object, depth: int) -> Any:
    """Return the value without null members. The protocol does not define the content of `_meta`, so it is kept."""
    members, elements = as_object(value), as_list(value)
    if not depth or (members is None and elements is None):
        return value
    if members is None:
        return [_without_nulls(element, depth - 1) for element in elements or ()]
    return {
        name: inner if name == "_meta" else _without_nulls(inner, depth - 1)
        for name, inner in members.items()
        if inner is not None
    }
