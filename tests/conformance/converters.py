"""Run in the environment `converters`: turns each listed tool into those of model APIs, and prints what fails.

Standard input has one definition of a tool in each line, as `tools/list` has it. Standard output has one JSON object:
how many tools were read, and for each converter its failures.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any

# This environment has libraries that the development environment, whose type checkers read this file, has not.
_agents: Any = import_module("agents.mcp")
_anthropic: Any = import_module("anthropic.lib.tools.mcp")
_genai: Any = import_module("google.genai._mcp_utils")
_langchain_core: Any = import_module("langchain_core.utils.function_calling")
_langchain_mcp: Any = import_module("langchain_mcp_adapters.tools")
_litellm: Any = import_module("litellm.llms.vertex_ai.common_utils")
_types: Any = import_module("mcp.types")

_SHOWN = 5
_URL = "http://127.0.0.1:9/mcp"


def _to_google(tool: Any) -> None:
    declared = _genai.mcp_to_gemini_tool(tool).function_declarations[0]
    missing = tool.inputSchema["properties"].keys() - (declared.parameters.properties or {}).keys()
    assert not missing, f"loses {sorted(missing)}"


def _to_openai(tool: Any) -> None:
    server = _agents.MCPServerStreamableHttp(params={"url": _URL})
    _agents.MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=False)


def _to_anthropic(tool: Any) -> None:
    _anthropic.async_mcp_tool(tool, None).to_dict()


def _to_langchain(tool: Any) -> None:
    connection = {"transport": "streamable_http", "url": _URL}
    made = _langchain_mcp.convert_mcp_tool_to_langchain_tool(None, tool, connection=connection)
    _langchain_core.convert_to_openai_tool(made)


def _to_litellm(tool: Any) -> None:
    _litellm._build_vertex_schema(deepcopy(tool.inputSchema))


_CONVERTERS: dict[str, Callable[[Any], None]] = {
    "google-genai": _to_google,
    "openai-agents": _to_openai,
    "anthropic": _to_anthropic,
    "langchain": _to_langchain,
    "litellm": _to_litellm,
}


def main() -> None:
    """Convert every tool of standard input."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    read, failures = 0, {name: list[str]() for name in _CONVERTERS}
    for line in sys.stdin:
        tool, read = _types.Tool.model_validate_json(line), read + 1
        for name, convert in _CONVERTERS.items():
            try:
                convert(tool)
            except Exception as error:
                failures[name].append(f"{tool.name}: {type(error).__name__}: {error}"[:300])
    found = {name: {"count": len(texts), "first": texts[:_SHOWN]} for name, texts in failures.items()}
    print(json.dumps({"read": read, "failures": found}))


if __name__ == "__main__":
    main()
