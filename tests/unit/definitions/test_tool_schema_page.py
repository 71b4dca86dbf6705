"""docs/tool-schema.md is true: its blocks run, its lists are the code's."""

import json
import re
from pathlib import Path

import pytest

from gateway.definitions.contract.tools import validate_tool_definition
from gateway.definitions.templates.filters import FILTERS
from gateway.definitions.uri.templates import UriTemplate
from gateway.errors import ResourceValidationError

PAGE = (Path(__file__).parents[3] / "docs" / "tool-schema.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_json_on_the_page_is_a_tool() -> None:
    """Ours: a copied definition is accepted."""
    for block in blocks("json"):
        assert validate_tool_definition(json.loads(block)).to_wire() == json.loads(block)


def test_the_python_on_the_page_runs() -> None:
    """Ours: a copied example works (TDF-3)."""
    assert blocks("python")
    for block in blocks("python"):
        exec(compile(block, "docs/tool-schema.md", "exec"), {})


def test_the_page_lists_every_filter() -> None:
    """Ours: the list of them is complete."""
    listed = re.search(r"^Filters: (.*?)\.$", PAGE, re.MULTILINE | re.DOTALL)

    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == sorted(FILTERS)


def _rows(columns: int) -> list[list[list[str]]]:
    """The code in each cell of the table with so many columns."""
    section = PAGE.partition("## URI templates")[2]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line] for line in lines if len(line) == columns]


def test_the_uri_templates_of_the_page_match() -> None:
    """Ours: each form, a URI of it with its values, and one that is none (RES-2)."""
    rows = _rows(4)

    assert {sign for row in rows for sign in re.findall(r"\{([+#./;?&]?)", row[0][0])} == {"", *"+#./?&"}
    for [template], [uri], values, [other] in rows:
        read = UriTemplate.parse(template)
        assert read.match(uri) == dict(zip(values[::2], values[1::2], strict=True))
        assert read.match(other) is None


def test_the_uri_templates_of_the_page_are_refused_with_its_remedy() -> None:
    """Ours: the refusal names the remedy of the table (RES-2)."""
    rows = _rows(3)

    assert len(rows) == 14
    for [template], _, instead in rows:
        with pytest.raises(ResourceValidationError) as refused:
            UriTemplate.parse(f"x://{template}")
        hint = refused.value.message.partition("; use ")[2]
        assert [form for form in instead if form not in hint] == []
        assert instead
