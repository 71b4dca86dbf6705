"""Content blocks, resource contents and prompt messages have the protocol's forms."""

from typing import Any

import pytest

from gateway.definitions.contract.contents import (
    declare_contents,
    declare_messages,
    validate_content,
    validate_contents,
    validate_messages,
)
from gateway.errors import DefinitionInvalid, PromptValidationError, ResourceValidationError, ToolValidationError

TEXT: dict[str, Any] = {
    "type": "text",
    "text": "any \x1b[1m text\n\u202e",
    "annotations": {"priority": 1},
    "_meta": {"a": 1},
}
IMAGE: dict[str, Any] = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
AUDIO: dict[str, Any] = {"type": "audio", "data": "", "mimeType": "audio/wav"}
LINK: dict[str, Any] = {"type": "resource_link", "uri": "a:b", "name": "n", "title": "t", "size": 1, "icons": []}
EMBEDDED: dict[str, Any] = {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": ""}}
BLOB: dict[str, Any] = {"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA", "_meta": {}}}
BLOCKS: list[dict[str, Any]] = [TEXT, IMAGE, AUDIO, LINK, EMBEDDED, BLOB]


def pointers(error: DefinitionInvalid) -> list[str]:
    return [fault.pointer for fault in error.faults]


def test_every_kind_of_block_is_taken() -> None:
    """MCP: text, image, audio, resource links and embedded resources (CAL-1)."""
    assert list(validate_content(BLOCKS)) == BLOCKS
    assert validate_content([]) == ()


@pytest.mark.parametrize(
    ("block", "pointer"),
    [
        (5, "/0"),
        ({}, "/0/type"),
        ({"type": "video"}, "/0/type"),
        ({"type": ["text"]}, "/0/type"),
        ({"type": "text"}, "/0/text"),
        ({"type": "text", "text": None}, "/0/text"),
        ({"type": "text", "text": "a", "more": 1}, "/0/more"),
        ({"type": "text", "text": "a", "annotations": {"x": 1}}, "/0/annotations/x"),
        ({"type": "text", "text": "a", "_meta": []}, "/0/_meta"),
        ({"type": "image", "data": "AAAA"}, "/0/mimeType"),
        ({"type": "image", "mimeType": "image/png"}, "/0/data"),
        ({"type": "image", "data": "A", "mimeType": "image/png"}, "/0/data"),
        ({"type": "image", "data": "é===", "mimeType": "image/png"}, "/0/data"),
        ({"type": "image", "data": 5, "mimeType": "image/png"}, "/0/data"),
        ({"type": "image", "data": "AAAA", "mimeType": "audio/wav"}, "/0/mimeType"),
        ({"type": "audio", "data": "AAAA", "mimeType": "image/png"}, "/0/mimeType"),
        ({"type": "resource_link", "name": "n"}, "/0/uri"),
        ({"type": "resource_link", "uri": "a:b"}, "/0/name"),
        ({"type": "resource_link", "uri": "relative", "name": "n"}, "/0/uri"),
        ({"type": "resource_link", "uri": "a:b", "name": "n", "size": -1}, "/0/size"),
        ({"type": "resource"}, "/0/resource"),
        ({"type": "resource", "resource": {}}, "/0/resource/uri"),
        ({"type": "resource", "resource": {"uri": "a:b"}}, "/0/resource"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": 5}}, "/0/resource/text"),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": "?"}}, "/0/resource/blob"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "", "blob": ""}}, "/0/resource/blob"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "", "name": ""}}, "/0/resource/name"),
    ],
)
def test_a_broken_block_is_refused_where_it_is_broken(block: object, pointer: str) -> None:
    """Ours: a handler's answer is checked before a client sees it (CAL-4)."""
    with pytest.raises(ToolValidationError) as caught:
        validate_content([block])

    assert pointer in pointers(caught.value)


@pytest.mark.parametrize("raw", [None, {}, "text", [TEXT] * 1_001, [{"type": "text", "text": object()}]])
def test_content_that_is_no_list_of_blocks_is_refused(raw: object) -> None:
    """Ours: at most a thousand, and JSON only."""
    with pytest.raises(ToolValidationError):
        validate_content(raw)


def test_contents_without_uri_or_type_get_the_resources_own() -> None:
    """MCP: each content has its URI; ours: and its MIME type (RES-1)."""
    raw = [{"text": "a"}, {"uri": "c:d", "mimeType": "image/png", "blob": "AAAA"}]

    assert validate_contents(raw, uri="a:b", mime_type="text/plain") == (
        {"uri": "a:b", "mimeType": "text/plain", "text": "a"},
        {"uri": "c:d", "mimeType": "image/png", "blob": "AAAA"},
    )


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ({"text": "a"}, "/0/mimeType"),
        ({"text": "a", "mimeType": "x"}, "/0/mimeType"),
        ({"text": "a", "mimeType": 5}, "/0/mimeType"),
        ({"mimeType": "text/plain"}, "/0"),
        ({"text": "a", "blob": "", "mimeType": "text/plain"}, "/0/blob"),
        ({"text": 5, "mimeType": "text/plain"}, "/0/text"),
        ({"blob": "!", "mimeType": "text/plain"}, "/0/blob"),
        ({"uri": "x", "text": "a", "mimeType": "text/plain"}, "/0/uri"),
        ({"text": "a", "mimeType": "text/plain", "size": 1}, "/0/size"),
        (5, "/0"),
    ],
)
def test_broken_contents_are_refused_where_they_are_broken(content: object, pointer: str) -> None:
    """Ours: text or blob, never both, and a MIME type from somewhere (RES-1)."""
    with pytest.raises(ResourceValidationError) as caught:
        validate_contents([content], uri="a:b", mime_type=None)

    assert pointer in pointers(caught.value)


def test_declared_contents_may_leave_uri_and_type_to_the_resource() -> None:
    """Ours: they are filled in when the resource is read."""
    assert declare_contents([{"text": "a"}]) == ({"text": "a"},)
    with pytest.raises(ResourceValidationError):
        declare_contents([{"uri": "a:b"}])


@pytest.mark.parametrize("block", BLOCKS)
def test_a_message_may_hold_every_kind_of_block(block: dict[str, Any]) -> None:
    """MCP: user and assistant, one block each (PRM-2)."""
    messages = [{"role": "user", "content": block}, {"role": "assistant", "content": block}]

    assert list(validate_messages(messages)) == messages
    assert list(declare_messages(messages)) == messages


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"role": "system", "content": TEXT}, "/0/role"),
        ({"content": TEXT}, "/0/role"),
        ({"role": "user"}, "/0/content"),
        ({"role": "user", "content": [TEXT]}, "/0/content"),
        ({"role": "user", "content": "text"}, "/0/content"),
        ({"role": "user", "content": {"type": "text"}}, "/0/content/text"),
        ({"role": "user", "content": TEXT, "name": "x"}, "/0/name"),
        ({"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b"}}}, "/0/content/resource"),
    ],
)
def test_a_broken_message_is_refused_where_it_is_broken(message: object, pointer: str) -> None:
    """Ours: `system` is no role of a prompt (PRM-2)."""
    with pytest.raises(PromptValidationError) as caught:
        validate_messages([message])

    assert pointer in pointers(caught.value)


def test_a_declared_message_may_only_name_a_resource() -> None:
    """Ours: it is read as the principal that asks for the prompt (PRM-2)."""
    message: dict[str, Any] = {"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b"}}}

    assert declare_messages([message]) == (message,)
    with pytest.raises(PromptValidationError):
        declare_messages([message | {"content": {"type": "resource", "resource": {"text": "a"}}}])
