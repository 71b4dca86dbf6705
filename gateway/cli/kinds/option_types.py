"""Types of options of declared members that click does not have."""

from typing import Any

import click

from gateway.cli.input.declarations import only_one, read_declarations

_FOREVER = "forever"


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
    """A number of days such as 90d or 90; `forever` is null."""

    name = "days"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or an empty text for null."""
        if not isinstance(value, str) or not value:
            return value
        number = value.removesuffix("d")
        if value != _FOREVER and not (number.isascii() and number.isdigit()):
            self.fail("must be a number of days such as 90d, or `forever`", param, ctx)
        return "" if value == _FOREVER else int(number)


class OrNothing(click.ParamType[Any]):
    """A value of another type, or an empty text, which is sent as null."""

    def __init__(self, of: click.ParamType[Any]) -> None:
        self._of = of
        self.name = of.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value that is not empty."""
        return value if value == "" else self._of.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The placeholder of the other type."""
        return self._of.get_metavar(param, ctx)
