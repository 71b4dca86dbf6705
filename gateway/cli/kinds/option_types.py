"""Types of options of declared members that click does not have."""

from typing import Any

import click

from gateway.cli.input.declarations import only_one, read_declarations


class FileWith(click.ParamType[Any]):
    """A file, JSON or YAML, that has exactly one member of the object; an empty text is an empty list."""

    name = "file"

    def __init__(self, member: str) -> None:
        self._member = member

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the member."""
        if not isinstance(value, str) or not value:
            return value or []
        content = only_one(read_declarations(value)).content
        if content.keys() != {self._member}:
            self.fail(f"{value}: must have exactly the member `{self._member}`", param, ctx)
        return content[self._member]


class Days(click.ParamType[Any]):
    """A number of days such as 90d or 90."""

    name = "days"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = str(value).removesuffix("d")
        if not (number.isascii() and number.isdigit()):
            self.fail("must be a number of days such as 90d", param, ctx)
        return int(number)


class OrNothing(click.ParamType[Any]):
    """A value of another type, or an empty text or a word for null; both become an empty text."""

    def __init__(self, of: click.ParamType[Any], word: str) -> None:
        self._of = of
        self._word = word
        self.name = of.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value that is not null."""
        return "" if value in {"", self._word} else self._of.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The placeholder of the other type."""
        return self._of.get_metavar(param, ctx)
