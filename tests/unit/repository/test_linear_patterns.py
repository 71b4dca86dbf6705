"""Regular expressions over texts of tenants read a long repetition in linear time."""

import subprocess
import sys

import pytest

_PROGRAM = """
from gateway.definitions.changed_fields import describe_change
from gateway.definitions.json_schema.pattern_costs import cost_of_pattern
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.search import search
import anyio, dataclasses

@dataclasses.dataclass
class Changed:
    text: str

fragment = {fragment!r}
long = fragment * (300_000 // len(fragment))
cost_of_pattern(long)
search(GuardrailCheck.SECRETS, (), long + chr(10))
anyio.run(lambda: describe_change(None, Changed(long), key=b"k"))
"""


@pytest.mark.parametrize(
    "fragment", ["http://", "https://a@", "[", "[a", "\\p{", "(?", "{1", "\t", "a ", "//@", "\\u{"]
)
def test_a_long_repetition_is_read_once(fragment: str) -> None:
    """Attack: a definition whose text repeats the beginning of a URL held the event loop for seconds (RES-1).

    Texts of URLs and patterns of open classes took minutes; each takes less than a second. The limit only ends a test
    that would not end.
    """
    program = _PROGRAM.format(fragment=fragment)
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)
