"""A client of one tenant's MCP URL in revision 2026-07-28, which has no sessions."""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import TracebackType
from typing import Self

import httpx

from gateway.cli.exit_codes import ExitCode, exit_for_status
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, number_at, pick, text_at, to_object, to_objects
from gateway.cli.transport_failures import transport_failure
from gateway.domain.http.mcp_requests import header_value, request_body, request_headers

_TIMEOUT = httpx.Timeout(120.0, connect=5.0)
_LIMIT_REACHED = 42900


def mirrored_headers(schema: object, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the `Mcp-Param-…` headers that the tool's schema requires for these arguments."""
    headers: dict[str, str] = {}
    for name, inner in to_object(pick(schema, "properties")).items():
        value = arguments.get(name)
        token = pick(inner, "x-mcp-header")
        if is_object(value):
            headers |= mirrored_headers(inner, value)
        elif isinstance(token, str) and isinstance(value, str | int):
            headers[f"Mcp-Param-{token}"] = header_value(json.dumps(value) if isinstance(value, int) else value)
    return headers


class McpClient:
    """A client of a tenant's MCP URL with one credential."""

    def __init__(self, url: str, key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"},
            timeout=_TIMEOUT,
            trust_env=False,
            transport=transport,
            verify=not url.startswith("http://"),  # reading the authorities takes 30 ms
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._http.close()

    def tools(self) -> Iterator[JsonObject]:
        """Yield every tool that the key may use, page by page."""
        params: JsonObject = {}
        while True:
            result = self._request("tools/list", params)
            yield from to_objects(result.get("tools"))
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return
            params = {"cursor": cursor}

    def find(self, name: str) -> JsonObject:
        """Return the tool of this name.

        Raises:
            Failure: the key has no such tool.
        """
        names: list[str] = []
        for tool in self.tools():
            names.append(text_at(tool, "name"))
            if names[-1] == name:
                return tool
        near = get_close_matches(name, names, n=1)
        detail = f"no tool {name!r} at {self._url}"
        raise Failure(f"{detail}; did you mean {near[0]!r}?" if near else detail, ExitCode.NOT_FOUND)

    def call(self, tool: JsonObject, arguments: JsonObject) -> JsonObject:
        """Return the result of a call; the result itself can be an error.

        Raises:
            Failure: the gateway refused or was not reached, or the tool requests input that this client cannot provide.
        """
        name = text_at(tool, "name")
        mirrored = mirrored_headers(tool.get("inputSchema"), arguments)
        result = self._request("tools/call", {"name": name, "arguments": arguments}, name=name, extra=mirrored)
        if result.get("resultType", "complete") != "complete":
            raise Failure(f"{name} requires further input, which this command does not support")
        return result

    def _request(
        self,
        method: str,
        params: JsonObject,
        *,
        name: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> JsonObject:
        headers = {**request_headers(method, name=name), **(extra or {})}
        body = json.dumps(request_body(method, params)).encode()
        try:
            response = self._http.post(self._url, content=body, headers=headers)
        except httpx.TransportError as error:
            raise transport_failure(self._url, error) from None
        return _result_of(response)


def _result_of(response: httpx.Response) -> JsonObject:
    message = _message_of(response)
    if isinstance(message.get("result"), dict):
        return to_object(message["result"])
    raise _refusal(response, message)


def _message_of(response: httpx.Response) -> JsonObject:
    if response.headers.get("Content-Type", "").startswith("text/event-stream"):
        return _last_response(response.text)
    try:
        return to_object(response.json())
    except ValueError:
        return {}


def _last_response(stream: str) -> JsonObject:
    """Return the last response in a complete event stream; notifications are skipped."""
    found: JsonObject = {}
    for event in stream.replace("\r\n", "\n").split("\n\n"):
        lines = [line.removeprefix("data:").removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        try:
            message = to_object(json.loads("\n".join(lines))) if lines else {}
        except ValueError:
            continue
        if "result" in message or "error" in message:
            found = message
    return found


def _refusal(response: httpx.Response, message: JsonObject) -> Failure:
    code = exit_for_status(response.status_code)
    error = message.get("error")
    if is_object(error):
        return Failure(_describe_error(error), ExitCode.BUSY if number_at(error, "code") == _LIMIT_REACHED else code)
    if response.is_success:
        return Failure(f"{response.url} did not respond as an MCP server", code)
    text = text_at(message, "detail") or text_at(message, "title")
    return Failure(text or f"HTTP {response.status_code} {response.reason_phrase}", code)


def _describe_error(error: JsonObject) -> str:
    retry = text_at(error, "data", "retry_after_s")
    notes = [note for name in ("code", "correlation_id") if (note := text_at(error, "data", name))]
    text = text_at(error, "message") or "refused"
    return text + (f"; retry in {retry} s" if retry else "") + (f" [{' '.join(notes)}]" if notes else "")
