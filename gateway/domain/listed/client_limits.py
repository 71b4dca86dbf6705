"""Limits of MCP clients and of model APIs on tools, with their sources; and the limits that listed tools exceed.

Most limits are met by the listed form. The others depend on what an author wrote or on the number of tools: reports,
`doctor` and the page of a tool name them. docs/clients.md is written from this table.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.json_access import Object, as_list, as_object
from gateway.domain.listed.limits import MAX_NAMED
from gateway.domain.listed.schema import listed_schema

OPENAI, CLAUDE, CLAUDE_CODE, CURSOR = "OpenAI API", "Claude API", "Claude Code", "Cursor"
VS_CODE, GEMINI, GENAI, COPILOT, CODEX = "VS Code", "Gemini API", "google-genai", "Copilot", "Codex"
DESKTOP, GEMINI_CLI, OLDER_GEMINI = "Claude Desktop", "Gemini CLI", "older Gemini clients"

SERVER_NAME_LENGTH = 8
"""Assumed length of the name that a user gives the server in a client, such as `petstore`."""

_LISTED = "the listed form"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimit:
    """One limit: the clients that have it, what they do beyond it, and where that is known from."""

    clients: tuple[str, ...]
    limit: str
    effect: str
    source: str
    met_by: str = _LISTED
    """The part of the gateway that keeps the limit; empty if it is only reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFinding:
    """A limit that listed tools exceed: the clients, the number of tools, some of their names, and the remedy."""

    clients: tuple[str, ...]
    text: str
    tools: int
    names: tuple[str, ...]
    remedy: str

    @property
    def sentence(self) -> str:
        """The finding as one sentence for a report."""
        named = ", ".join(self.names) + (", …" if self.tools > len(self.names) else "")
        return f"{', '.join(self.clients)}: {self.text}{f' ({named})' if self.names else ''}; {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reported:
    """A limit on each tool that is only reported."""

    clients: tuple[str, ...]
    text: str
    remedy: str
    exceeds: Callable[[str, Mapping[str, Any]], bool]


CURSOR_NAME_LENGTH = 60
CLAUDE_CODE_NAME_LENGTH = 64
OPENAI_DESCRIPTION_LENGTH = 1024
CLAUDE_CODE_DESCRIPTION_LENGTH = 2048
CLAUDE_CODE_RESULT_TOKENS = 25_000
TOOL_COUNTS: Sequence[tuple[int, tuple[str, ...], str]] = (
    (512, (GEMINI,), "refuses"),
    (128, (OPENAI, VS_CODE, COPILOT), "refuse"),
    (80, (CURSOR,), "leaves out tools of"),
)
"""Numbers of tools above which clients refuse a request or leave tools out, the largest first."""

_COUNT_SOURCES = {
    512: "google-gemini/gemini-cli#19083",
    128: "0x4m4/hexstrike-ai#89, microsoft/vscode-copilot-release#11653",
    80: "Snowflake-Labs/mcp#77; 40 until September 2025",
}

_SHORTER_NAME = "set `prefix`, or rename the tools (`gateway tool set NAME --rename`)"
_SHORTER_TEXT = "shorten the description (`gateway tool set NAME --description`)"
_FEWER = "expose the source to the query tools (`--expose query`), or select tools with a profile"

_REPORTED: Sequence[_Reported] = (
    _Reported(
        clients=(CURSOR,),
        text=f"leaves out tools whose name with a server name of {SERVER_NAME_LENGTH} has more than"
        f" {CURSOR_NAME_LENGTH} characters",
        remedy=_SHORTER_NAME,
        exceeds=lambda name, _: len(name) + SERVER_NAME_LENGTH > CURSOR_NAME_LENGTH,
    ),
    _Reported(
        clients=(CLAUDE_CODE, CODEX),
        text=f"cuts or refuses names that have more than {CLAUDE_CODE_NAME_LENGTH} characters as `mcp__SERVER__TOOL`",
        remedy=_SHORTER_NAME,
        exceeds=lambda name, _: len("mcp____") + SERVER_NAME_LENGTH + len(name) > CLAUDE_CODE_NAME_LENGTH,
    ),
    _Reported(
        clients=(OPENAI,),
        text=f"refuses a request with a description of more than {OPENAI_DESCRIPTION_LENGTH:,} characters",
        remedy=_SHORTER_TEXT,
        exceeds=lambda _, tool: len(tool.get("description") or "") > OPENAI_DESCRIPTION_LENGTH,
    ),
    _Reported(
        clients=(CLAUDE_CODE,),
        text=f"cuts descriptions after {CLAUDE_CODE_DESCRIPTION_LENGTH:,} characters",
        remedy=_SHORTER_TEXT,
        exceeds=lambda _, tool: len(tool.get("description") or "") > CLAUDE_CODE_DESCRIPTION_LENGTH,
    ),
)

_NEWER_KEYWORDS = frozenset({"$ref", "const", "exclusiveMinimum", "patternProperties", "propertyNames"})
_NAMED_PARTS = ("properties", "dependentSchemas")
_LISTED_PARTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE_PARTS = ("items", "additionalProperties", "not", "contains", "if", "then", "else")
_KEYWORDS_OF_OLDER = "`$ref`, `const`, `exclusiveMinimum`, `patternProperties`, `propertyNames` or lists of types"


def _has_newer_keyword(schema: object) -> bool:
    """True if a keyword that older Gemini clients refuse applies to an argument, at any level."""
    waiting = [schema]
    while waiting:
        part = as_object(waiting.pop()) or {}
        if not _NEWER_KEYWORDS.isdisjoint(part) or as_list(part.get("type")) is not None:
            return True
        waiting += [one for keyword in _NAMED_PARTS for one in (as_object(part.get(keyword)) or {}).values()]
        waiting += [one for keyword in _LISTED_PARTS for one in as_list(part.get(keyword)) or ()]
        waiting += [part[keyword] for keyword in _SINGLE_PARTS if keyword in part]
    return False


_OF_OLDER_CLIENTS: Sequence[_Reported] = (
    _Reported(
        clients=(OLDER_GEMINI,),
        text=f"refuse a request whose schemas have {_KEYWORDS_OF_OLDER}",
        remedy="newer ones, such as google-genai 3.6.1, translate them",
        exceeds=lambda _, tool: _has_newer_keyword(tool.get("inputSchema")),
    ),
)
"""Limits of clients of which newer releases have none; `doctor` is silent about them."""


def find_limits(tools: Iterable[Mapping[str, Any]], *, with_older: bool = False) -> Sequence[ClientFinding]:
    """Return the limits that these listed definitions exceed, one by one; on demand also those of older clients."""
    rules = (*_REPORTED, *_OF_OLDER_CLIENTS) if with_older else _REPORTED
    exceeding: list[list[str]] = [[] for _ in rules]
    for tool in tools:
        for rule, names in zip(rules, exceeding, strict=True):
            if rule.exceeds(tool["name"], tool):
                names.append(tool["name"])
    return [
        ClientFinding(
            clients=rule.clients, text=rule.text, tools=len(names), names=tuple(names[:MAX_NAMED]), remedy=rule.remedy
        )
        for rule, names in zip(rules, exceeding, strict=True)
        if names
    ]


def find_refused_keywords(stored: Object) -> Sequence[ClientFinding]:
    """Return the clients that may refuse a schema which is listed keyword for keyword, because it names its dialect."""
    schema = {name: value for name, value in (as_object(stored.get("inputSchema")) or {}).items() if name != "$schema"}
    if listed_schema(schema) == schema:
        return []
    return [
        ClientFinding(
            clients=(CLAUDE, OPENAI, GENAI),
            text="may refuse keywords of its schema, which is listed as it is stored because it names its dialect",
            tools=1,
            names=(),
            remedy="remove `$schema` from the definition",
        )
    ]


def find_count_limits(tools: int) -> Sequence[ClientFinding]:
    """Return the limits that a list of this many tools exceeds."""
    return [
        ClientFinding(
            clients=clients, text=f"{verb} lists of more than {limit} tools", tools=tools, names=(), remedy=_FEWER
        )
        for limit, clients, verb in TOOL_COUNTS
        if tools > limit
    ]


def _limit(*clients: str, limit: str, effect: str, source: str, met_by: str = _LISTED) -> ClientLimit:
    return ClientLimit(clients=clients, limit=limit, effect=effect, source=source, met_by=met_by)


_WHOLE_REQUEST = "refuses all tools of the request"

LIMITS: Sequence[ClientLimit] = (
    _limit(
        *(CLAUDE, DESKTOP, OPENAI, CODEX, COPILOT),
        limit="a name matches `^[a-zA-Z0-9_-]{1,64}$`",
        effect=_WHOLE_REQUEST,
        source="hostinger/api-mcp-server#48, openai/codex#8174, github/copilot-cli#2581",
    ),
    _limit(
        *(GEMINI, GEMINI_CLI),
        limit="a name begins with a letter or `_`",
        effect=_WHOLE_REQUEST,
        source="mixelpixx/KiCAD-MCP-Server#7, google-gemini/gemini-cli#2966",
    ),
    _limit(
        CLAUDE,
        limit="an argument's name matches `^[a-zA-Z0-9_.-]{1,64}$`",
        effect=_WHOLE_REQUEST,
        source="anthropics/claude-code#92648",
    ),
    _limit(
        *(CLAUDE, OPENAI),
        limit="no `oneOf`, `anyOf`, `allOf`, `not`, `enum` or `const` beside the properties of the root",
        effect=_WHOLE_REQUEST,
        source="makenotion/notion-mcp-server#341, PCIRCLE-AI/claude-code-buddy#32",
    ),
    _limit(
        *(OPENAI, VS_CODE),
        limit="an array has `items`, which is one schema",
        effect="refuses the tool",
        source="microsoft/vscode#284536, digitalocean-labs/mcp-digitalocean#265",
    ),
    _limit(
        *(CLAUDE, CLAUDE_CODE),
        limit="schemas are 2020-12",
        effect=_WHOLE_REQUEST,
        source="anthropics/claude-code#586, ankimcp/anki-mcp-server-addon#75",
    ),
    _limit(
        *(OPENAI, GEMINI),
        limit="patterns have no look-around, back reference or `\\p`",
        effect="refuses the tool",
        source="can1357/oh-my-pi#2784, cline/cline#14013",
    ),
    _limit(
        GEMINI,
        limit="each required name is a property; `properties` only for objects",
        effect=_WHOLE_REQUEST,
        source="probelabs/probe#569, anomalyco/opencode#11889",
    ),
    _limit(
        GENAI,
        limit="`additionalProperties`, `items` and properties are objects, not booleans",
        effect="its converter fails for the session",
        source="google-genai 3.6.1, `mcp_to_gemini_tool`",
    ),
    _limit(
        "LangChain",
        limit="no `$ref` in examples, defaults and enums",
        effect="its converter fails for the list",
        source="langchain-core 1.8.3, `dereference_refs`",
    ),
    _limit(
        *("google-adk", "LlamaIndex", "Haystack", "smolagents", "mcp-use", "strands", GEMINI_CLI),
        limit="one page of tools",
        effect="reads the first page alone",
        source="tried with the releases of November 2026",
        met_by="pages of 1,000 tools and 4 MiB (`GATEWAY_LIST_PAGE_ITEMS`)",
    ),
    _limit(
        CURSOR,
        limit=f"the names of server and tool have at most {CURSOR_NAME_LENGTH} characters",
        effect="leaves the tool out",
        source="ComposioHQ/composio#2788, awslabs/mcp#1283",
        met_by="",
    ),
    _limit(
        *(CLAUDE_CODE, CODEX),
        limit=f"`mcp__SERVER__TOOL` has at most {CLAUDE_CODE_NAME_LENGTH} characters",
        effect="cuts or refuses the name",
        source="anthropics/claude-code#21136",
        met_by="",
    ),
    _limit(
        OPENAI,
        limit=f"a description has at most {OPENAI_DESCRIPTION_LENGTH:,} characters",
        effect=_WHOLE_REQUEST,
        source="probelabs/probe#9",
        met_by="",
    ),
    _limit(
        CLAUDE_CODE,
        limit=f"a description has at most {CLAUDE_CODE_DESCRIPTION_LENGTH:,} characters",
        effect="cuts the description",
        source="tried with Claude Code 2.1",
        met_by="",
    ),
    *(
        _limit(
            *clients,
            limit=f"at most {limit} tools",
            effect=f"{verb} longer lists",
            source=_COUNT_SOURCES[limit],
            met_by="",
        )
        for limit, clients, verb in TOOL_COUNTS
    ),
    _limit(
        CLAUDE_CODE,
        limit=f"a result has at most {CLAUDE_CODE_RESULT_TOKENS:,} tokens",
        effect="refuses the result",
        source="dbt-labs/dbt-mcp#178",
        met_by="profiles with `summary_threshold`, or `_fields`; `doctor` names the tools",
    ),
    _limit(
        OLDER_GEMINI,
        limit=f"no {_KEYWORDS_OF_OLDER}",
        effect=_WHOLE_REQUEST,
        source="modelcontextprotocol/servers#1624; google-genai 3.6.1 translates them",
        met_by="",
    ),
)
