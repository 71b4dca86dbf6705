"""Settings of live sources, by kind."""

import pytest

from gateway.definitions.live.settings import validate_settings
from gateway.domain.live_sources import LiveKind
from gateway.errors import DefinitionInvalid

_GOOD: list[tuple[LiveKind, dict[str, object]]] = [
    (LiveKind.MCP, {"url": "https://api.example/mcp?x=1"}),
    (LiveKind.MCP, {"url": "http://[::1]:8080/mcp", "transport": "sse", "headers": {"X-Team": "a"}, "timeout_s": 1}),
    (LiveKind.NEOVIM, {"address": "unix:/run/user/1000/nvim.1.0", "timeout_s": 2.5}),
    (LiveKind.NEOVIM, {"address": "tcp:127.0.0.1:6666"}),
    (LiveKind.NEOVIM, {"address": "tcp:[::1]:6666"}),
    (LiveKind.AGENT, {}),
    (LiveKind.AGENT, {"subject": "anna"}),
    (LiveKind.COMMAND, {"argv": ["server", "--stdio"], "env": {"TOKEN": "x"}}),
]

_BAD: list[tuple[LiveKind, object, str]] = [
    (LiveKind.MCP, {}, "/settings/url"),
    (LiveKind.MCP, [], "/settings"),
    (LiveKind.MCP, None, "/settings"),
    (LiveKind.MCP, {"url": 7}, "/settings/url"),
    *(
        (LiveKind.MCP, {"url": url}, "/settings/url")
        for url in (
            "ftp://api.example/mcp",
            "https://user:pass@api.example/mcp",
            "https://api.example/mcp#part",
            "https:///mcp",
            "https://api.example:99999/mcp",
            "https://api.example:0/mcp",
            "https://api.example/a b",
            "https://api.example/\r\nHost: other",
            "https://аpi.example/",  # a Cyrillic letter
            "https://api.example/" + "a" * 3_000,
        )
    ),
    (LiveKind.MCP, {"url": "https://a.example", "transport": "stdio"}, "/settings/transport"),
    (LiveKind.MCP, {"url": "https://a.example", "headers": {"a b": "x"}}, "/settings/headers/a b"),
    (LiveKind.MCP, {"url": "https://a.example", "headers": {"a": "x\r\ny: z"}}, "/settings/headers/a"),
    (LiveKind.MCP, {"url": "https://a.example", "headers": {"a": 7}}, "/settings/headers/a"),
    (LiveKind.MCP, {"url": "https://a.example", "headers": {f"h{i}": "" for i in range(21)}}, "/settings/headers"),
    (LiveKind.MCP, {"url": "https://a.example", "timeout_s": 0}, "/settings/timeout_s"),
    (LiveKind.MCP, {"url": "https://a.example", "timeout_s": 301}, "/settings/timeout_s"),
    (LiveKind.MCP, {"url": "https://a.example", "timeout_s": True}, "/settings/timeout_s"),
    (LiveKind.MCP, {"url": "https://a.example", "timeout_s": float("nan")}, "/timeout_s"),
    (LiveKind.MCP, {"url": "https://a.example", "argv": ["sh"]}, "/settings/argv"),
    *(
        (LiveKind.NEOVIM, {"address": address}, "/settings/address")
        for address in (
            "unix:relative.sock",
            "unix:/run/../etc/passwd",
            "unix:/run//nvim",
            "unix:/run/./nvim",
            "unix:/run/",
            "unix:/run/\0nvim",
            "unix:/" + "a" * 200,
            "tcp:127.0.0.1",
            "tcp:127.0.0.1:0",
            "tcp:127.0.0.1:70000",
            "tcp:ho st:1",
            "127.0.0.1:6666",
        )
    ),
    (LiveKind.AGENT, {"url": "https://a.example"}, "/settings/url"),
    (LiveKind.AGENT, {"subject": 7}, "/settings/subject"),
    (LiveKind.COMMAND, {"argv": []}, "/settings/argv"),
    (LiveKind.COMMAND, {"argv": "sh -c id"}, "/settings/argv"),
    (LiveKind.COMMAND, {"argv": [" "]}, "/settings/argv"),
    (LiveKind.COMMAND, {"argv": ["sh\0"]}, "/settings/argv/0"),
    (LiveKind.COMMAND, {"argv": ["sh"], "env": {"A=B": "x"}}, "/settings/env/A=B"),
    (LiveKind.COMMAND, {"argv": ["sh"], "env": {"A": "x\0"}}, "/settings/env/A"),
]


@pytest.mark.parametrize(("kind", "settings"), _GOOD)
def test_settings_of_the_documented_form_are_kept(kind: LiveKind, settings: dict[str, object]) -> None:
    """Ours: settings are stored as they were sent."""
    assert validate_settings(kind, settings) == settings


@pytest.mark.parametrize(("kind", "settings", "pointer"), _BAD)
def test_other_settings_are_refused(kind: LiveKind, settings: object, pointer: str) -> None:
    """Ours: a wrong setting is named; nothing is guessed."""
    with pytest.raises(DefinitionInvalid) as refused:
        validate_settings(kind, settings)

    assert [fault.pointer for fault in refused.value.faults] == [pointer]
