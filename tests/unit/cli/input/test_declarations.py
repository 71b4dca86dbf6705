"""Files that declare things: JSON or YAML, one document or several."""

from pathlib import Path

import pytest

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import for_each, read_declarations, text_in
from gateway.cli.input.json_fields import JsonObject


def _read(folder: Path, text: str, name: str = "file.yaml") -> list[tuple[str, JsonObject]]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return [(one.place.removeprefix(f"{folder}/"), one.content) for one in read_declarations(str(path))]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": 1}', "file.json"),
        ('{"a": 1}', "file.yaml"),
        ('\ufeff [{"a": 1}]', "file.json"),
        ("a: 1\n", "file.yml"),
        ("# said\n---\n# more\na: 1\n...\n", "file.yaml"),
        ("--- {a: 1}\n", "file.yaml"),
    ],
)
def test_one_document_is_read_in_every_form(tmp_path: Path, text: str, name: str) -> None:
    """Ours: JSON and YAML mean the same (PRG-3)."""
    assert _read(tmp_path, text, name) == [(name, {"a": 1})]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a: 1\n---\nb: 2\n---\n# nothing\n", "file.yaml"),
        ('[{"a": 1}, {"b": 2}]', "file.json"),
        ("- a: 1\n- b: 2\n", "file.yaml"),
        ("# said\n- {a: 1}\n---\nb: 2\n", "file.yaml"),
    ],
)
def test_several_documents_have_their_places(tmp_path: Path, text: str, name: str) -> None:
    """Ours: a file may declare many objects, and a refusal names the faulty one (PRG-3)."""
    assert _read(tmp_path, text, name) == [(f"{name}, document 1", {"a": 1}), (f"{name}, document 2", {"b": 2})]


def test_a_mark_inside_a_text_ends_no_document(tmp_path: Path) -> None:
    """YAML 1.2: only a mark at the start of a line ends a document."""
    [(_, content)] = _read(tmp_path, "text: |\n  ---\n  ... and so on\nother: a --- b\n")
    assert content == {"text": "---\n... and so on\n", "other": "a --- b"}


@pytest.mark.parametrize(
    ("text", "name", "reported"),
    [
        ("", "file.yaml", "is empty"),
        (" \n", "file.json", "is empty"),
        ("# nothing\n", "file.yaml", "declares nothing"),
        ("[]", "file.json", "declares nothing"),
        ("--- []\n", "file.yaml", "declares nothing"),
        ("null", "file.json", "is not an object"),
        ('{"a": 1, "a": 2}', "file.json", "the key 'a' occurs twice"),
        ("- a\n", "file.yaml", "is not an object"),
        ("a: 1\n---\n- b\n", "file.yaml", "document 2 is not an object"),
        ('{"a": NaN}', "file.json", "NaN is not valid JSON"),
        ('{"a":\n }', "file.json", "line 2"),
        ("a: 1\n---\nb: [\n", "file.yaml", "line 4"),
        ("a: &x [*x]\n", "file.yaml", "file.yaml"),
        ("[" * 5000, "file.json", "is not valid JSON"),
    ],
)
def test_an_unreadable_file_is_wrong_usage_with_its_place(tmp_path: Path, text: str, name: str, reported: str) -> None:
    """Ours: exit code 2 and where it is wrong, before anything is sent (CLI-1)."""
    with pytest.raises(Failure) as failed:
        _read(tmp_path, text, name)
    assert failed.value.exit_code == ExitCode.USAGE
    assert reported in failed.value.message


def test_a_file_that_is_not_there_or_no_text_is_wrong_usage(tmp_path: Path) -> None:
    """Ours: the same for what cannot be opened (CLI-1)."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("none", "binary", ""):
        with pytest.raises(Failure) as failed:
            read_declarations(str(tmp_path / name))
        assert failed.value.exit_code == ExitCode.USAGE


def test_the_first_refusal_ends_it_and_is_named(tmp_path: Path) -> None:
    """Ours: the objects that were stored before it stay (CLI-1)."""
    path = tmp_path / "file.yaml"
    path.write_text("n: 1\n---\nn: 2\n---\nn: 3\n")
    done: list[JsonObject] = []

    def act(body: JsonObject) -> JsonObject:
        if body["n"] == 2:
            raise Failure("no", ExitCode.CONFLICT)
        return body

    with pytest.raises(Failure, match="document 2: no") as failed:
        for_each(read_declarations(str(path)), act, done.append)
    assert (failed.value.exit_code, done) == (ExitCode.CONFLICT, [{"n": 1}])


def test_a_text_is_found_or_empty() -> None:
    """Ours: a body of any shape can be asked for its name."""
    assert text_in({"a": {"b": "c"}}, "a", "b") == "c"
    assert text_in({"a": {"b": 1}}, "a", "b") == text_in({"a": []}, "a", "b") == text_in({}, "a") == ""
