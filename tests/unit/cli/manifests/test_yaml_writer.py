"""YAML of exported manifests."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.input.limits import MAX_DEPTH
from gateway.cli.manifests.yaml_writer import write_yaml
from gateway.openapi.document.yaml_reader import read_yaml

_TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "no",
        "on",
        "~",
        "null",
        "0o17",
        "0x1f",
        "1e5",
        "12:30",
        "2024-01-01",
        "<<",
        "=",
        "---",
        "- a",
        "a: b",
        "#",
        " a",
        "1_0",
    ]
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=5))
def test_a_written_file_is_read_back(value: dict[str, object]) -> None:
    """Ours: an exported text stays a text, also one that YAML would take for a number, a date or a switch (CFG-1)."""
    read = read_yaml(write_yaml(value), depth=MAX_DEPTH, nodes=10_000)

    assert json.dumps(read) == json.dumps(value)


def test_texts_of_lines_are_blocks() -> None:
    """Ours: a diff of exported manifests shows the changed line of a long text."""
    assert write_yaml({"text": "a\nb\n", "list": ["x"]}) == "text: |\n  a\n  b\nlist:\n- x\n"
