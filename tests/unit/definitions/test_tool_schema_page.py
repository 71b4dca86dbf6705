"""Whether docs/tool-schema.md tells the truth: its blocks run, its lists are the code's."""

import json
import re
from pathlib import Path

import pytest

from gateway.definitions.liquid.filters import FILTERS
from gateway.definitions.tools import validate_tool_definition
from gateway.definitions.uri_templates import UriTemplate
from gateway.errors import ResourceValidationError

PAGE = (Path(__file__).parents[3] / "docs" / "tool-schema.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_json_on_the_page_is_a_tool() -> None:
    """Ours: what readers copy is taken."""
    for block in blocks("json"):
        assert validate_tool_definition(json.loads(block)).to_wire() == json.loads(block)


def test_the_python_on_the_page_runs() -> None:
    """Ours: what readers copy works (TDF-3)."""
    assert blocks("python")
    for block in blocks("python"):
        exec(compile(block, "docs/tool-schema.md", "exec"), {})


def test_the_page_lists_every_filter() -> None:
    """Ours: nobody has to guess which there are."""
    listed = re.search(r"^Filters: (.*?)\.$", PAGE, re.MULTILINE | re.DOTALL)

    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == sorted(FILTERS)


def test_the_uri_templates_of_the_page_are_taken_or_refused_as_it_says() -> None:
    """Ours: the table is true (RES-2)."""
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", PAGE.partition("## URI templates")[2], re.MULTILINE)

    assert len(rows) == 4
    for taken, refused in rows:
        for template in re.findall(r"`([^`]+)`", taken):
            UriTemplate.parse(template)
        for template in re.findall(r"`([^`]*\{[^`]*)`", refused):
            with pytest.raises(ResourceValidationError):
                UriTemplate.parse(f"x://{template}")
