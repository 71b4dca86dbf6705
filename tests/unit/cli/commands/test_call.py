"""Text of the result of a call."""

from gateway.cli.commands.call import render_result


def test_texts_are_printed_and_json_in_them_is_laid_out() -> None:
    """Ours: the answer is what a person came for."""
    result: dict[str, object] = {"content": [{"type": "text", "text": "hello"}, {"type": "text", "text": '{"a":1}'}]}

    assert render_result(result) == 'hello\n{\n  "a": 1\n}'


def test_bytes_are_described_and_not_printed() -> None:
    """Ours: a picture does not flood the terminal."""
    result: dict[str, object] = {
        "content": [
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "audio", "mimeType": "audio/wav", "data": "A"},
            {"type": "resource", "resource": {"uri": "x:", "mimeType": "a/b", "blob": "AAAA"}},
            {"type": "resource", "resource": {"uri": "x:", "text": "inside"}},
            {"type": "resource_link", "uri": "x:y"},
            {"type": "later"},
        ]
    }

    assert render_result(result).splitlines() == [
        "[image/png, 3 bytes; --json shows them]",
        "[audio/wav, broken base64]",
        "[a/b, 3 bytes; --json shows them]",
        "inside",
        "[x:y]",
        "[later]",
    ]


def test_structured_content_alone_is_shown() -> None:
    """MCP: a result may have nothing but structured content."""
    assert render_result({"content": [], "structuredContent": {"a": 1}}) == '{\n  "a": 1\n}'
