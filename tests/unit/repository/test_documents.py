"""Documents about the code, compared with it: code map, errors, promises; rules of ceilings and prose that can fail."""

import inspect
import os
import re
import subprocess
from pathlib import Path

from gateway import errors
from gateway.domain import refusals
from tests import promises, prose
from tests.ceilings import complaints

ROOT = Path(__file__).parents[3]


def _error_classes() -> dict[str, type[errors.GatewayError]]:
    return {
        kind.__name__: kind
        for module in (errors, refusals)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, errors.GatewayError)
    }


def test_a_function_beyond_the_ceiling_is_found(tmp_path: Path) -> None:
    """Ours: the ceilings are a check that can fail."""
    (tmp_path / "gateway").mkdir()
    body = "\n".join(f"    x{number} = {number}" for number in range(60))
    (tmp_path / "gateway" / "utils.py").write_text(f'"""One."""\n\n\ndef run_manager():\n{body}\n')

    found = list(complaints(tmp_path))

    assert any("61 lines" in complaint for complaint in found)
    assert any("called utils" in complaint for complaint in found)
    assert any("called manager" in complaint for complaint in found)


def test_a_crowded_folder_and_a_class_defined_twice_are_found(tmp_path: Path) -> None:
    """Ours: a name has one meaning, and a folder can be read at a glance."""
    (tmp_path / "gateway").mkdir()
    for number in range(26):
        (tmp_path / "gateway" / f"room_{number}.py").write_text('"""One."""\n\n\nclass Room:\n    """One."""\n')

    found = list(complaints(tmp_path))

    assert any("26 entries" in complaint for complaint in found)
    assert any("Room: is defined in" in complaint for complaint in found)


def test_a_log_call_before_other_clean_up_is_found(tmp_path: Path) -> None:
    """Ours: a log that fails changes no state; what only leaves the block may follow it."""
    (tmp_path / "gateway").mkdir()
    wrong = "    try:\n        run()\n    except E:\n        if left:\n            log.info('')\n            del left\n"
    right = "    try:\n        run()\n    finally:\n        left = 0\n        log.info('ended')\n        raise Ended\n"
    text = f'"""One."""\n\n\ndef run_wrong():\n{wrong}\n\ndef run_right():\n{right}'
    (tmp_path / "gateway" / "loop.py").write_text(text)

    assert [complaint.partition(" ")[0] for complaint in complaints(tmp_path)] == ["gateway/loop.py:9:"]


def test_an_indirect_question_and_an_avoided_word_are_found(tmp_path: Path) -> None:
    """Ours: the rules of prose are a check that can fail."""
    written = tmp_path / "one.py"
    written.write_text(
        '"""Whether it is."""\n\nto_tell = 1  # nobody knows\n"""`says` is a name here."""\n'
        'raise ValueError("told", f"{to_tell:>9} stands {\'he is\' if to_tell else 3} twice; `mend` it")\n'
    )

    found = [complaint.removeprefix(f"{written}:") for complaint in prose.complaints([written])]

    assert found == [
        "3: avoid 'tell' in the name to_tell",
        "1: begins with an indirect question: Whether it is.",
        "3: avoid 'nobody': # nobody knows",
        "5: avoid 'stands': … stands … twice; `…` it",
        "5: avoid 'he': he is",
    ]


def test_a_long_sentence_and_a_wide_cell_of_a_page_are_found(tmp_path: Path) -> None:
    """Ours: pages have short sentences, titles that are statements, and the words of the field."""
    page = tmp_path / "one.md"
    words = " ".join(["word"] * 26)
    page.write_text(
        f"# How it works\n\n{words}. Short; {words[:20]}:\n\n```\n{words} told\n```\n\n| a | {words[:104]} |\n"
        "\n- The gateway tells `told`.\n- Fine.\n"
    )

    found = [complaint.removeprefix(f"{page}:") for complaint in prose.page_complaints([page])]

    assert found == [
        "1: begins with an indirect question: How it works",
        f"3: 26 words, at most 25: {words}.",
        f"9: 21 words, at most 20: {words[:104]}",
        "11: avoid 'tells': - The gateway tells `…`.",
    ]


def test_names_of_tests_are_statements() -> None:
    """Ours: the name of a test states a fact; a clause of time or place may begin it."""
    assert list(prose.unclear_test("x", "test_whether_it_works"))
    assert not list(prose.unclear_test("x", "test_when_redis_is_away_lists_work"))


def test_superseded_decisions_name_their_successors() -> None:
    """Ours: a reader of an old record finds the one that holds, and the reverse."""
    records = {path.name: path.read_text().split("\n\n")[1] for path in (ROOT / "docs/decisions").glob("0*.md")}
    links = {name: " ".join(status.split()) for name, status in records.items()}

    def pairs(pattern: str) -> set[tuple[str, str]]:
        return {
            (name, other)
            for name, status in links.items()
            for sentence in re.findall(pattern, status)
            for other in re.findall(r"\(([\w-]+\.md)\)", sentence)
        }

    superseded = pairs(r"uperseded (?:in part )?by .*?\.(?: |$)")
    assert superseded
    assert {(new, old) for old, new in superseded} == pairs(r"Supersedes (?:in part )?\[.*?\.(?: |$)")


def test_the_code_map_names_every_package_and_nothing_else() -> None:
    """Ours: docs/code-map.md names the package of each subject."""
    text = (ROOT / "docs" / "code-map.md").read_text()
    mapped = set(re.findall(r"^\| `(gateway/[a-z_/]+(?:\.py)?)` \|", text, re.MULTILINE))
    packages = {f"gateway/{path.parent.name}/" for path in (ROOT / "gateway").glob("*/__init__.py")}
    modules = {f"gateway/{path.name}" for path in (ROOT / "gateway").glob("*.py") if path.name != "__init__.py"}

    assert mapped == packages | modules


def test_the_glossary_is_short() -> None:
    """Ours: a contributor learns at most forty words, each explained once."""
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \|$", (ROOT / "docs" / "development" / "glossary.md").read_text(), re.MULTILINE
    )
    words = [word for word in rows if word not in {"word", "---"}]

    assert len(words) <= 40
    assert len(set(words)) == len(words)


def test_the_help_of_make_is_aligned() -> None:
    """Ours: every sentence of `make` begins in the same column, whatever its target is called."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of another `make`
    shown = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, env=outside, capture_output=True, text=True, check=True
    ).stdout
    columns = {re.match(r"  make \S+ +", line) for line in shown.splitlines()}

    assert None not in columns
    assert len({found.end() for found in columns if found}) == 1


def test_the_error_page_lists_every_error_with_its_code() -> None:
    """Ours: an error code that a client sees can be looked up in docs/errors.md."""
    text = (ROOT / "docs" / "errors.md").read_text()
    listed = dict(re.findall(r"^\| `([a-z_.]+)` \| `(\w+)` \|", text, re.MULTILINE))

    assert {code: name for name, kind in _error_classes().items() for code in [kind.code]} == listed


def test_the_page_that_is_served_has_a_row_for_every_code() -> None:
    """Ours: the `type` of any problem leads to the row of its code (RFC 9457)."""
    page = (ROOT / "gateway" / "web" / "errors.html").read_text()
    sources = [
        path.read_text()
        for folder in ("web", "admin", "protocol")
        for path in (ROOT / "gateway" / folder).glob("**/*.py")
    ]
    written = {code for source in sources for code in re.findall(r'"(http\.[a-z_]+)"', source)}
    events = {"http.disconnect", "http.request", "http.response.body", "http.response.start"}
    codes = {kind.code for kind in _error_classes().values()} | (written - events)

    assert {"http.host_refused", "not_found"} <= codes
    assert {code for code in codes if f'<tr id="{code}">' not in page} == set()


def test_the_tree_in_the_error_module_draws_every_error() -> None:
    """Ours: the drawing at the top of errors.py is the tree below it."""
    drawings = f"{errors.__doc__}{refusals.__doc__}"
    drawn = set(re.findall(r"[├└]── (\w+)", drawings)) | {"GatewayError"}

    assert drawn == set(_error_classes())


def test_every_promise_that_a_test_names_has_words() -> None:
    """Ours: a promise is a sentence, not only a number."""
    assert set(promises.tests_by_promise()) <= set(promises.TITLES)


def test_every_behaviour_test_names_a_promise() -> None:
    """Ours: each test of the whole application proves a promise."""
    named = {test for tests in promises.tests_by_promise().values() for test in tests}

    assert [test for test in promises.all_tests() if test.startswith("tests/behaviour/") and test not in named] == []
