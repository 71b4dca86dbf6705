"""Writers of parameter values: OpenAPI's style table, one function per location.

Each function takes the style of a parameter plan and returns a writer. A writer turns a value into its encoded string,
or raises `Unwritable`. An empty string means that nothing is sent, except for an empty string in a header. Null members
of lists and objects are dropped (undefined in RFC 6570 section 2.3). OpenAPI does not define lists and objects inside a
list or object; they are written as compact JSON, except in deepObject.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from gateway.domain.http.headers import is_token
from gateway.domain.http.plans import Style
from gateway.upstream.serialize.path_safety import check_path_value
from gateway.upstream.serialize.percent_encoding import Unwritable, is_list, is_object, percent, to_text

Encode: TypeAlias = Callable[[str], str]
Writer: TypeAlias = Callable[[object], str]

_DELIMITERS = {Style.SPACE: (" ", "%20"), Style.PIPE: ("|", "%7C"), Style.TAB: ("\t", "%09")}
_COOKIE_TEXT = re.compile(r"[!#-:<-\[\]-~]*|\"[!#-:<-\[\]-~]*\"")
"""Cookie octets of RFC 6265, optionally in quotes, and commas, which separate members in this style."""
_NO_PATH = frozenset({"", ".", ".."})


def path_writer(name: str, style: Style, *, explode: bool, encode: Encode) -> Writer:
    """Return a writer of simple, label, matrix and delimited styles; it refuses values that could change the path."""
    key = percent(name)
    plain, encoded = _DELIMITERS.get(style, (None, ","))

    def item(value: object) -> str:
        if type(value) is int:
            return str(value)
        text = to_text(value)
        if text:
            check_path_value(text)
        if plain is not None:
            _check_member(text, plain)
        return encode(text)  # guard: path-encoded

    def write(value: object) -> str:
        if style is Style.MATRIX:
            parts = _matrix(key, value, item, explode=explode)
        elif style is Style.LABEL:
            parts = "." + _joined(value, item, "." if explode else ",", explode=explode)
        else:
            parts = _joined(value, item, encoded, explode=explode)
        if parts in _NO_PATH:
            raise Unwritable("it is empty, which would change the path")
        return parts

    return write


def query_writer(name: str, style: Style, *, explode: bool, encode: Encode) -> Writer:
    """Return a writer of form, delimited and deepObject styles: `name=value` pairs joined by `&`, as in form bodies."""
    key = percent(name)
    if style is Style.DEEP_OBJECT:
        return lambda value: "&".join(_deep(key, value, encode))
    if explode:
        return lambda value: "&".join(_pairs(key, value, encode))
    plain, encoded = _DELIMITERS.get(style, (None, ","))

    def item(value: object) -> str:
        text = to_text(value)
        if plain is None:
            return encode(text).replace(",", "%2C")
        _check_member(text, plain)
        return encode(text)

    def write(value: object) -> str:
        if _is_scalar(value):
            return f"{key}={encode(to_text(value))}"
        return f"{key}={_joined(value, item, encoded, explode=False)}" if _has_members(value) else ""

    return write


def header_writer(style: Style, *, explode: bool) -> Writer:
    """Return a writer of simple and delimited styles, unencoded; it refuses members that contain the delimiter."""
    delimiter = _DELIMITERS.get(style, (",", ","))[0]

    def item(value: object) -> str:
        text = to_text(value)
        _check_member(text, delimiter)
        return text

    def write(value: object) -> str:
        return to_text(value) if _is_scalar(value) else _joined(value, item, delimiter, explode=explode)

    return write


def cookie_writer(name: str, style: Style, *, explode: bool, encode: Encode) -> Writer:
    """Return a writer of form and cookie styles. Exploded members become separate cookies; only form style is encoded.

    A name that is valid in a cookie is not encoded, because servers do not decode names.
    """
    if style is Style.COOKIE:
        return lambda value: "; ".join(
            f"{_cookie_part(key)}={_cookie_part(text)}" for key, text in text_pairs(name, value, style, explode=explode)
        )
    if explode:
        return lambda value: "; ".join(
            f"{key if is_token(key) else percent(key)}={encode(text)}"
            for key, text in text_pairs(name, value, style, explode=True)
        )
    write = query_writer("", style, explode=False, encode=encode)
    return lambda value: f"{name}{text}" if (text := write(value)) else ""


def list_divider(styles: Sequence[Style]) -> Callable[[object], object]:
    """Return a function that joins each list inside a list into one string (Swagger 2.0), with one style per level."""
    delimiters = [_DELIMITERS.get(style, (",", ","))[0] for style in styles]
    if not delimiters:
        return lambda value: value
    return lambda value: [_divided(member, delimiters) for member in value] if is_list(value) else value


def _divided(value: object, delimiters: Sequence[str]) -> object:
    if not delimiters or not is_list(value):
        return value
    texts = [to_text(_divided(member, delimiters[1:])) for member in value if member is not None]
    for text in texts:
        _check_member(text, delimiters[0])
    return delimiters[0].join(texts)


def text_pairs(name: str, value: object, style: Style, *, explode: bool) -> Iterator[tuple[str, str]]:
    """Yield the names and strings of a value in a style, before encoding."""
    if style is Style.DEEP_OBJECT:
        yield from _deep_texts(name, value)
    elif _is_scalar(value):
        yield name, to_text(value)
    elif explode and is_object(value):
        yield from ((key, to_text(member)) for key, member in _members(value))
    elif explode and is_list(value):
        yield from ((name, to_text(member)) for member in value if member is not None)
    elif _has_members(value):
        delimiter = _DELIMITERS.get(style, (",", ","))[0]

        def item(member: object) -> str:
            text = to_text(member)
            _check_member(text, delimiter)
            return text

        yield name, _joined(value, item, delimiter, explode=False)


def _deep_texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    if is_object(value):
        for key, member in _members(value):
            yield from _deep_texts(f"{name}[{key}]", member)
    elif is_list(value):
        for index, member in enumerate(value):
            if member is not None:
                yield from _deep_texts(f"{name}[{index}]", member)
    else:
        yield name, to_text(value)


def _check_member(text: str, delimiter: str) -> None:
    if delimiter in text:
        raise Unwritable(f"a member cannot contain {delimiter!r}, which separates members")


def _cookie_part(text: str) -> str:
    if not _COOKIE_TEXT.fullmatch(text):
        raise Unwritable(
            "a cookie of this style must be ASCII, without blanks, inner quotes, semicolons and backslashes"
        )
    return text


def _joined(value: object, item: Writer, separator: str, *, explode: bool) -> str:
    """Return the members of a value, joined by the separator; a scalar counts as one member."""
    if is_list(value):
        return separator.join([item(member) for member in value if member is not None])
    if is_object(value):
        equals = "=" if explode else separator
        return separator.join([f"{item(name)}{equals}{item(member)}" for name, member in _members(value)])
    return item(value)


def _matrix(key: str, value: object, item: Writer, *, explode: bool) -> str:
    """Return a value in matrix style; an empty value has no equals sign (RFC 6570 section 3.2.7)."""
    if explode and is_list(value):
        named = [(key, item(member)) for member in value if member is not None]
    elif explode and is_object(value):
        named = [(item(name), item(member)) for name, member in _members(value)]
    elif _is_scalar(value) or _has_members(value):
        named = [(key, _joined(value, item, ",", explode=False))]
    else:
        named = []
    return "".join([f";{name}={text}" if text else f";{name}" for name, text in named])


def _pairs(key: str, value: object, encode: Encode) -> list[str]:
    if is_list(value):
        return [f"{key}={encode(to_text(member))}" for member in value if member is not None]
    if is_object(value):
        return [f"{percent(name)}={encode(to_text(member))}" for name, member in _members(value)]
    return [f"{key}={encode(to_text(value))}"]


def _deep(key: str, value: object, encode: Encode) -> Iterator[str]:
    """Yield `name[a][b]=…` pairs; list members use their index, as in the libraries that introduced this style."""
    if is_object(value):
        for name, member in _members(value):
            yield from _deep(f"{key}%5B{percent(name)}%5D", member, encode)
    elif is_list(value):
        for index, member in enumerate(value):
            if member is not None:
                yield from _deep(f"{key}%5B{index}%5D", member, encode)
    else:
        yield f"{key}={encode(to_text(value))}"


def _members(value: dict[str, object]) -> Iterator[tuple[str, object]]:
    return ((name, member) for name, member in value.items() if member is not None)


def _is_scalar(value: object) -> bool:
    return not isinstance(value, (list, dict))


def _has_members(value: object) -> bool:
    if is_list(value):
        return any(member is not None for member in value)
    return is_object(value) and any(member is not None for member in value.values())
