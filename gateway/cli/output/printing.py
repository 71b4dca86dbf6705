"""Output of a command as JSON or as text."""

import json
import re
from collections.abc import Callable

import click

_CONTROLS = re.compile(r"[\x7f-\x9f]")


def show(value: object, text: Callable[[], str], *, as_json: bool) -> None:
    """Print the value as JSON or as text."""
    shown = _as_json(value) if as_json else text()
    if shown:
        click.echo(shown)


def _as_json(value: object) -> str:
    """Return JSON that is safe to print: control characters that JSON permits are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
