"""`python -m benchmarks.search`: how often a search finds the right tool, and how long it takes, as a Markdown table.

LiveMCPBench has questions of people about the tools of 70 MCP servers, and the tools that answer each; BFCL ("live
multiple") has questions about functions. Both are fetched from PyPI into a folder of their own; the gateway's index
ranks their tools as those of live sources.
"""

import hashlib
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.figures import Table, percentile
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.openapi.query.outline import OutlinedOperation
from gateway.openapi.query.remote_tools import REMOTE_METHOD, outline_tools
from gateway.openapi.query.search import Ranking
from gateway.openapi.query.word_index import WordIndex

PACKAGES = Path(__file__).with_name("search_packages.txt")
_LIVE_TOOLS = "baseline/mcp_copilot/config/mcp_arg_Qwen3-Embedding-0.6B_qwen25_72b_int4_instruct.json"
_LIVE_QUESTIONS = "baseline/annotation/claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"
_FUNCTIONS = "bfcl_eval/data/BFCL_v4_live_multiple.json"
_ANSWERS = "bfcl_eval/data/possible_answer/BFCL_v4_live_multiple.json"
_NUMBERED = re.compile(r"^\s*\d+\.\s*")
_COLUMNS = ("exam", "questions", "sources", "tools", "R@5", "hit@5", "R@10", "hit@10", "ms, median", "ms, 95th")
_MANY = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """Tools by source, and questions with the names of the tools that answer each."""

    name: str
    tools: Mapping[str, Sequence[Tool]]
    questions: Sequence[tuple[str, frozenset[str]]]

    def pooled(self, name: str, count: int | None = None) -> "Exam":
        """Return the same with all tools in one source, repeated up to this number of tools."""
        tools = [tool for listed in self.tools.values() for tool in listed]
        wanted = count or len(tools)
        return Exam(name=name, tools={"": (tools * (wanted // len(tools) + 1))[:wanted]}, questions=self.questions)


def main() -> None:
    """Fetch the packages, ask all questions, and print the table."""
    folder = _fetch()
    live, functions = _live(folder), _functions(folder)
    exams = (
        live,
        live.pooled("LiveMCPBench, one source"),
        functions,
        live.pooled("LiveMCPBench, repeated to 5,000 tools", _MANY),
    )
    print(Table(title="Search", columns=_COLUMNS, rows=tuple(map(_sit, exams))).render())


def _sit(exam: Exam) -> tuple[str, ...]:
    indexes = [WordIndex([*map(_endpoint, tools)], source) for source, tools in exam.tools.items()]
    names = [[tool.name for tool in tools] for tools in exam.tools.values()]
    shown = [b"\1" * len(index) for index in indexes]
    found: dict[int, list[tuple[float, bool]]] = {5: [], 10: []}
    times: list[float] = []
    for question, wanted in exam.questions:
        began = time.perf_counter()
        ranking = Ranking(indexes, question, None)
        hits = [ranking.hit(position) for position in ranking.best(shown)[:10]]
        times.append((time.perf_counter() - began) * 1000)
        named = [hit.endpoint.path for _, hit in hits]
        relevant = sum(name in wanted for listed in names for name in listed)
        for depth, scores in found.items():
            right = sum(name in wanted for name in named[:depth])
            scores.append((right / relevant, right > 0))
    shares = [
        f"{100 * sum(column) / len(scores):.1f}" for scores in found.values() for column in zip(*scores, strict=True)
    ]
    tools = sum(map(len, names))
    counts = (str(len(exam.questions)), str(len(names)), f"{tools:,}")
    return (exam.name, *counts, *shares, f"{percentile(times, 50):.2f}", f"{percentile(times, 95):.2f}")


def _endpoint(tool: Tool) -> OutlinedOperation:
    """The tool as the search knows it; names may repeat, so each is outlined alone."""
    [endpoint] = outline_tools("", {f"{REMOTE_METHOD} {tool.name}": tool}).endpoints
    return endpoint


def _fetch() -> Path:
    """The folder with the packages, which pip fetches without their dependencies."""
    digest = hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:12]
    folder = Path(sys.prefix) / "environments" / f"search-{digest}"
    if not (folder / "done").exists():
        command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--only-binary", ":all:", "--target", str(folder), "-r", str(PACKAGES)]
        subprocess.run(command, check=True, timeout=300)
        (folder / "done").touch()
    return folder


def _live(folder: Path) -> Exam:
    tools: dict[str, list[Tool]] = defaultdict(list)
    servers: list[dict[str, Any]] = json.loads((folder / _LIVE_TOOLS).read_text())
    for server in servers:
        for one in server["tools"]:
            given: dict[str, object] = one["parameter"] or {}
            arguments = {name: str(text) for name, text in given.items()}
            tools[server["server_name"]].append(_tool(one["name"], one["description"] or "", arguments))
    names = {tool.name for listed in tools.values() for tool in listed}
    questions: list[tuple[str, frozenset[str]]] = []
    for task in json.loads((folder / _LIVE_QUESTIONS).read_text()):
        lines = task["Annotator Metadata"].get("Tools", "").split("\n")
        wanted = names.intersection(_NUMBERED.sub("", line).strip() for line in lines)
        if wanted:
            questions.append((task["Question"], frozenset(wanted)))
    return Exam(name="LiveMCPBench", tools=tools, questions=questions)


def _functions(folder: Path) -> Exam:
    answers = {one["id"]: one["ground_truth"] for one in _lines(folder / _ANSWERS)}
    tools: dict[str, Tool] = {}
    questions: list[tuple[str, frozenset[str]]] = []
    for task in _lines(folder / _FUNCTIONS):
        for one in task["function"]:
            properties = one["parameters"].get("properties", {})
            arguments = {name: str(schema.get("description") or "") for name, schema in properties.items()}
            tools.setdefault(
                json.dumps(one, sort_keys=True), _tool(one["name"], one.get("description") or "", arguments)
            )
        asked = " ".join(message["content"] for message in task["question"][0] if message["role"] == "user")
        questions.append((asked, frozenset(next(iter(answer)) for answer in answers.get(task["id"], ()))))
    return Exam(name="BFCL live multiple, one source", tools={"": [*tools.values()]}, questions=questions)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text().splitlines())


def _tool(name: str, description: str, arguments: Mapping[str, str]) -> Tool:
    properties = {argument: {"type": "string", "description": text} for argument, text in arguments.items()}
    definition = {"name": name, "description": description, "inputSchema": {"properties": properties}}
    return Tool(
        name=name,
        definition=msgspec.json.encode(definition),
        safety=Safety.SAFE,
        safety_reasons=(),
        origin=PrimitiveOrigin.LIVE,
    )


if __name__ == "__main__":
    main()
