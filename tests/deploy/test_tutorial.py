"""The tutorial: its commands run in their order, and print what the page shows."""

from pathlib import Path

import pytest

from tests.deploy import tutorial
from tests.support.servers import running_servers

_TEXT = tutorial.PAGE.read_text()


@pytest.mark.early
def test_the_tutorial_leads_to_a_tenant_in_production(tmp_path: Path) -> None:
    """Ours: every command succeeds and its output is that of the page (`python -m tests.deploy.tutorial` writes it)."""
    shown = tutorial.shown_commands(_TEXT)

    with running_servers() as servers:
        outputs = tutorial.run_commands(servers, tmp_path, [one.command for one in shown])

    assert len(shown) > 25
    assert [(one.command, output) for one, output in zip(shown, outputs, strict=True)] == [
        (one.command, one.output) for one in shown
    ]
    assert (tmp_path / "gateway.dump").stat().st_size > 100_000
    assert (tmp_path / "acme").is_dir()


def test_the_page_is_renewed_with_other_output() -> None:
    """Ours: text and commands stay, outputs are replaced, and what another test runs is left alone."""
    text = "# A\n\n<!-- not run: x -->\n```console\n$ a\nb\n```\n\n```console\n$ c \\\n  d\ne\n$ f\n```\n"

    assert [one.command for one in tutorial.shown_commands(text)] == ["c \\\n  d", "f"]
    assert tutorial.renewed(text, ["1\n", "2\n"]) == text.replace("e\n$ f\n", "1\n$ f\n2\n")


def test_varying_output_is_normalized() -> None:
    """Ours: keys, ids, times, digests and durations are the same on the page after each run."""
    key = f"mcpg_live_{'a' * 20}_{'B' * 43}{'0' * 8}"
    text = f"key {key}\nid key_{'x' * 20}  2026-11-29T16:24:24.5Z  {'ab' * 8} took 3.2 ms  \n"

    shown = tutorial.normal(text)
    assert "mcpg_live_…" in shown
    assert "2030-01-31T12:00:00Z" in shown
    assert tutorial.normal(shown) == shown
    assert "  \n" not in shown
