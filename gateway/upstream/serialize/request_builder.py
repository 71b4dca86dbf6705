"""Request builder: compiles an operation's plan once, and fills it with the arguments of each call.

Arguments cannot change the plan's origin or the fixed parts of its path: values in the URL are encoded, and values that
could change the path are refused.

Header arguments never fill a header that identifies a caller, frames the message or belongs to a connection. Examples:
Host, Authorization, Cookie, Accept, Content-Type, Content-Length, Transfer-Encoding, Connection, TE, Upgrade, Proxy-*,
X-Forwarded-*. A plan may name such a parameter, but a call with a value for it is refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.http.headers import is_token
from gateway.domain.http.plans import BodyKind, BodyPlan, Location, ParameterPlan, RequestPlan
from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.json_access import point
from gateway.errors import ArgumentsInvalid, Fault, NotYetSupported
from gateway.upstream.serialize.bodies import BodyWriter, body_writer
from gateway.upstream.serialize.header_checks import is_argument_header, is_header_value, is_sendable_url
from gateway.upstream.serialize.media_types import fit, is_form, is_json
from gateway.upstream.serialize.path_safety import check_path_value, has_dot_segment
from gateway.upstream.serialize.percent_encoding import (
    Unwritable,
    percent,
    reserved_cookie,
    reserved_path,
    reserved_query,
    to_json,
    to_text,
)
from gateway.upstream.serialize.styles import (
    Encode,
    Writer,
    cookie_writer,
    header_writer,
    list_divider,
    path_writer,
    query_writer,
)
from gateway.upstream.serialize.urlencoded import form_writer

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([0-9]+)\}")
_ORIGIN = re.compile(r"https?://[^/?#]+")


@dataclass(frozen=True, slots=True)
class _Slot:
    """One parameter with its compiled writer."""

    argument: str
    name: str
    required: bool
    write: Writer


@dataclass(frozen=True, slots=True)
class _Body:
    plan: BodyPlan
    write: BodyWriter


class RequestBuilder:
    """One operation's plan, compiled; immutable and shared by all calls.

    Raises:
        NotYetSupported: the plan has an unsupported feature.
    """

    def __init__(self, plan: RequestPlan) -> None:
        self._method = plan.method
        self._idempotent = plan.idempotent
        self._timeout_s = plan.timeout_s
        self._prefix, self._path = _compile_path(plan)
        self._base_query = plan.query
        self._query = _compile(plan, Location.QUERY) + _compile(plan, Location.QUERYSTRING)
        self._headers = _compile(plan, Location.HEADER)
        self._cookies = _compile(plan, Location.COOKIE)
        self.usual_headers: tuple[tuple[str, str], ...] = (("Accept", plan.accept),) if plan.accept else ()
        """The fixed headers, shared by all requests that have no header arguments."""
        self._bodies = {body.media_type: _Body(body, body_writer(body)) for body in (*_first(plan.body), *plan.bodies)}
        self._body = next(iter(self._bodies.values()), None)
        self._choice = plan.choice if plan.bodies else None
        self._plans = [body.plan for body in self._bodies.values()]
        self._check()

    def build(self, arguments: Mapping[str, object]) -> UpstreamRequest:
        """Return the request for these arguments; credentials are applied later.

        Raises:
            ArgumentsInvalid: an argument is missing or cannot be serialized, or the path would have a dot segment.
        """
        url = self._prefix
        if self._path:
            url += "".join([text if slot is None else _fill(slot, arguments) for text, slot in self._path])
            # guard: path-joined
            # the whole URL is checked, because a value may complete a dot segment of the fixed part
            if has_dot_segment(url):
                raise ArgumentsInvalid("These arguments would change the path of the operation.")
        query = self._write_query(arguments)
        if query:
            url = f"{url}?{query}"
        headers = self.usual_headers
        if self._headers or self._cookies:
            headers += self._write_headers(arguments)
        body = None
        if self._body is not None:
            body, media_type = self._write_body(arguments, self._body)
            if body is not None:
                headers += (("Content-Type", media_type),)
        return UpstreamRequest(
            method=self._method,
            url=url,
            headers=headers,
            body=body,
            idempotent=self._idempotent,
            timeout_s=self._timeout_s,
        )

    def _write_query(self, arguments: Mapping[str, object]) -> str:
        query = self._base_query
        for slot in self._query:
            text = _fill_optional(slot, arguments)
            if text:
                query = f"{query}&{text}" if query else text
        return query

    def _write_headers(self, arguments: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
        headers: list[tuple[str, str]] = []
        for slot in self._headers:
            text = _fill_optional(slot, arguments)
            if text or (text is not None and isinstance(arguments[slot.argument], str)):  # an empty list sends nothing
                headers.append((slot.name, text))
        cookies = [text for slot in self._cookies if (text := _fill_optional(slot, arguments))]
        if cookies:
            headers.append(("Cookie", "; ".join(cookies)))
        return tuple(headers)

    def _write_body(self, arguments: Mapping[str, object], body: _Body) -> tuple[bytes | None, str]:
        if self._choice is not None:
            body = self._choose(arguments, self._choice, body)
        argument = body.plan.argument
        value = arguments.get(argument)
        is_null_body = argument in arguments and body.plan.kind is BodyKind.JSON
        if value is None and not is_null_body:
            if body.plan.required:
                raise _invalid(argument, "the request body is required")
            return None, ""
        try:
            return body.write(value)
        except Unwritable as error:
            raise _invalid(argument, str(error), error.path) from None

    def _choose(self, arguments: Mapping[str, object], choice: str, first: _Body) -> _Body:
        """Return the body of the media type that the caller chose; without a choice, one that fits the value."""
        chosen = arguments.get(choice)
        if chosen is None:
            value = arguments.get(first.plan.argument)
            return first if value is None else self._bodies[fit(self._plans, value).media_type]
        found = self._bodies.get(chosen) if isinstance(chosen, str) else None
        if found is None:
            raise _invalid(choice, f"it must be one of: {', '.join(self._bodies)}")
        return found

    def _check(self) -> None:
        sample = self._prefix + "".join("x" if slot else text for text, slot in self._path)
        if self._base_query:
            sample = f"{sample}?{self._base_query}"
        if not is_sendable_url(sample) or has_dot_segment(sample) or not is_token(self._method):
            raise NotYetSupported("The method or URL of this operation is invalid.")
        if not all(is_header_value(value) for _, value in self.usual_headers):
            raise NotYetSupported("A response media type of this operation is not a valid header value.")


def _fill(slot: _Slot, arguments: Mapping[str, object]) -> str:
    value = arguments.get(slot.argument)
    if value is None:
        raise _invalid(slot.argument, "it is required")
    try:
        return slot.write(value)
    except Unwritable as error:
        raise _invalid(slot.argument, str(error), error.path) from None


def _fill_optional(slot: _Slot, arguments: Mapping[str, object]) -> str | None:
    if arguments.get(slot.argument) is None and not slot.required:
        return None
    return _fill(slot, arguments)


def _invalid(argument: str, reason: str, path: Sequence[str] = ()) -> ArgumentsInvalid:
    pointer = point(argument, *path)
    return ArgumentsInvalid(
        f"The argument {pointer} cannot be sent: {reason}.", faults=[Fault(pointer=pointer, reason=reason)]
    )


def _first(body: BodyPlan | None) -> tuple[BodyPlan, ...]:
    return () if body is None else (body,)


def _compile_path(plan: RequestPlan) -> tuple[str, tuple[tuple[str, _Slot | None], ...]]:
    """Return the origin with the fixed start of the path, and the following fixed strings and slots in order."""
    if not _ORIGIN.fullmatch(plan.origin):
        raise NotYetSupported("The server of this operation is not an http or https origin.")
    pieces: list[tuple[str, _Slot | None]] = []
    text, position = "", 0
    for found in _PLACEHOLDER.finditer(plan.path):
        text += plan.path[position : found.start()]
        position = found.end()
        if found[1] is None:
            text += "%7B" if found[0] == "{{" else "%7D"
            continue
        pieces += [(text, None), ("", _path_slot(plan, int(found[1])))]
        text = ""
    pieces.append((text + plan.path[position:], None))
    fixed = pieces[0][0] or "/"
    if not fixed.startswith("/"):
        raise NotYetSupported("The path of this operation does not start with '/'.")
    return plan.origin + fixed, tuple(piece for piece in pieces[1:] if piece[0] or piece[1])


def _path_slot(plan: RequestPlan, index: int) -> _Slot:
    if index >= len(plan.parameters) or plan.parameters[index].location is not Location.PATH:
        raise NotYetSupported("The path of this operation names a parameter that it does not have.")
    return _slot(plan.parameters[index], _write_path(plan.parameters[index]))


def _compile(plan: RequestPlan, location: Location) -> tuple[_Slot, ...]:
    make = {
        Location.QUERY: _write_query_value,
        Location.QUERYSTRING: _write_whole_query,
        Location.HEADER: _write_header,
        Location.COOKIE: _write_cookie,
    }[location]
    return tuple(_slot(parameter, make(parameter)) for parameter in plan.parameters if parameter.location is location)


def _slot(parameter: ParameterPlan, write: Writer) -> _Slot:
    return _Slot(parameter.argument, parameter.name, parameter.required, write)


def _content(parameter: ParameterPlan) -> Writer:
    """Return the writer of a `content` parameter in its media type, before the encoding for its location."""
    media_type = parameter.media_type or ""
    if is_json(media_type):
        return lambda value: to_json(value, ascii_only=parameter.location is Location.HEADER)
    if is_form(media_type):
        return form_writer(parameter.fields)
    return to_text


def _divided(parameter: ParameterPlan, write: Writer) -> Writer:
    """Wrap a writer so that it joins lists inside lists; the parameter's fields contain the style of each level."""
    if not parameter.fields:
        return write
    divide = list_divider([field.style for field in parameter.fields])
    return lambda value: write(divide(value))


def _write_path(parameter: ParameterPlan) -> Writer:
    encode: Encode = reserved_path if parameter.allow_reserved else percent
    if parameter.media_type is None:
        return _divided(
            parameter, path_writer(parameter.name, parameter.style, explode=parameter.explode, encode=encode)
        )
    serialise = _content(parameter)

    def write(value: object) -> str:
        text = serialise(value)
        check_path_value(text)
        return percent(text)

    return write


def _write_query_value(parameter: ParameterPlan) -> Writer:
    encode: Encode = reserved_query if parameter.allow_reserved else percent
    if parameter.media_type is None:
        return _divided(
            parameter, query_writer(parameter.name, parameter.style, explode=parameter.explode, encode=encode)
        )
    key, serialise = percent(parameter.name), _content(parameter)
    return lambda value: f"{key}={encode(serialise(value))}"


def _write_whole_query(parameter: ParameterPlan) -> Writer:
    serialise = _content(parameter)
    if is_form(parameter.media_type or ""):
        return serialise
    return lambda value: percent(serialise(value))


def _write_header(parameter: ParameterPlan) -> Writer:
    if not is_token(parameter.name):
        raise NotYetSupported("A header parameter of this operation has an invalid name.")
    if not is_argument_header(parameter.name):  # guard: header-identity
        return _refuse_header
    if parameter.media_type is None:
        write = _divided(parameter, header_writer(parameter.style, explode=parameter.explode))
    else:
        write = _content(parameter)

    def checked(value: object) -> str:
        text = write(value)
        if not is_header_value(text):  # guard: header-injection
            raise Unwritable("a header must consist of visible ASCII characters, without blanks at its ends")
        return text

    return checked


def _refuse_header(_: object) -> str:
    raise Unwritable("this header is set by the gateway only")


def _write_cookie(parameter: ParameterPlan) -> Writer:
    if not is_token(parameter.name):
        raise NotYetSupported("A cookie parameter of this operation has an invalid name.")
    if parameter.media_type is None:
        encode: Encode = reserved_cookie if parameter.allow_reserved else percent
        return cookie_writer(parameter.name, parameter.style, explode=parameter.explode, encode=encode)
    serialise = _content(parameter)
    return lambda value: f"{parameter.name}={percent(serialise(value))}"
