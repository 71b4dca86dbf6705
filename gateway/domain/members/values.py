"""Types of members that several kinds of objects share, with their bounds, and the functions that check them."""

from typing import Annotated
from urllib.parse import urlsplit

from gateway.domain.members.formats import NAME
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.members.markers import Check, Form, JsonFormat, Length, Names


def check_printable(text: str) -> str:
    """Return the text if it has no control characters.

    Raises:
        ValueError: it has some.
    """
    if not text.isprintable():
        raise ValueError("must not hold control characters")
    return text


def check_lines(text: str) -> str:
    """Return the text if its only control characters are line feeds.

    Raises:
        ValueError: it has others.
    """
    if not text.replace("\n", "").isprintable():
        raise ValueError("must not hold control characters but line feeds")
    return text


def check_url(text: str) -> str:
    """Return the text if it is an absolute http or https URL without credentials and fragment.

    Raises:
        ValueError: it is not.
    """
    if any(ord(character) <= 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("must be a URL without spaces and control characters")
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("must be a valid URL") from None
    if not is_usable:
        raise ValueError("must be an absolute http or https URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password; store them as credentials")
    if parts.fragment:
        raise ValueError("must not have a fragment")
    return text


def check_url_if_any(text: str) -> str:
    """Return an empty text, or one that `check_url` accepts.

    Raises:
        ValueError: it does not.
    """
    return text and check_url(text)


Prose = Annotated[str, Length(most=2000), Check(check_lines)]
"""A description, for people."""
ShortText = Annotated[str, Length(least=1, most=200), Check(check_printable)]
Url = Annotated[str, Length(least=1, most=MAX_URL_LENGTH), JsonFormat("uri"), Check(check_url)]
Uri = Annotated[str, Length(least=1, most=MAX_URL_LENGTH), Check(check_printable)]
CredentialName = Annotated[str, Form(NAME), Names("credential")]
