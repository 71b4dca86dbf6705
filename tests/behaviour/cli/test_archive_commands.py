"""Archives from the command line: recognised by what they are, not by what they are called."""

from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.archives import ZOO, tar_of, tgz_of, zip_of


@pytest.mark.parametrize(
    ("name", "raw"),
    [("zoo.zip", zip_of(ZOO)), ("zoo.tar.gz", tgz_of(ZOO)), ("zoo.tar", tar_of(ZOO)), ("zoo", zip_of(ZOO))],
)
async def test_an_archive_is_added_and_updated_like_a_file(terminal: Terminal, name: str, raw: bytes) -> None:
    """Ours: `gateway source add NAME ARCHIVE` sends the files as they are (OAS-1, OAS-7)."""
    await terminal.create_tenant()
    (terminal.folder / name).write_bytes(raw)

    added: Any = (await terminal.do("source", "add", "zoo", name, "--json")).value
    updated: Any = (await terminal.do("source", "update", "zoo", name, "--entry", "zoo/openapi.yaml", "--json")).value
    wrong = await terminal.run("source", "update", "zoo", name, "--entry", "none.yaml")

    assert added["report"]["counts"]["ok"] == updated["report"]["counts"]["ok"] == 3
    assert wrong.code == 1
    assert "none.yaml" in wrong.err


async def test_an_entry_without_an_archive_is_wrong_usage(terminal: Terminal) -> None:
    """Ours: exit code 2 means that the command line was wrong (CLI-1)."""
    (terminal.folder / "a.yaml").write_text("openapi: 3.1.0")

    for arguments in (("add", "a", "a.yaml", "--entry", "x"), ("update", "a", "--entry", "x")):
        assert (await terminal.run("source", *arguments)).code == 2
