"""Secret texts that admins send: parts of an object that no response, export, audit entry or `repr` can hold."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from gateway.domain.members.markers import About, Check, Length, Shape
from gateway.domain.tenancy.recorded_fields import Omitted


class Secret:
    """A secret text. No encoder of the gateway accepts this class, so only `reveal` returns the text.

    An object has it from a request until it is sealed; an object that was read from the database has none.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, for the cipher and the checks before it."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled or copied")


def check_one_line(text: str) -> str:
    """Return the text if it can be sent in a header or a URL.

    Raises:
        ValueError: it has a line break or NUL.
    """
    if any(character in "\r\n\0" for character in text):
        raise ValueError("must not hold line breaks or NUL")
    return text


SecretText = Annotated[Secret, Length(least=1, most=16_384), Check(check_one_line)]
"""A value or password."""
UserName = Annotated[Secret, Length(most=1024), Check(check_one_line)]
"""A user name, which is sealed with its password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretStatus:
    """The part that every status of an object with a secret has."""

    secret_at: Annotated[
        Omitted[datetime | None],
        About("The time of the newest secret; null without one, and for one of a release that did not store the time."),
        Shape.LISTED,
        Shape.AGE,
    ] = None
