"""A client of one tenant's MCP URL in revision 2026-07-28, which has no sessions."""

import json
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from types import TracebackType
from typing import Self

import httpx

from gateway.cli.exit_codes import ExitCode, exit_for_status
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, number_at, pick, text_at, to_object, to_objects
from gateway.cli.limits import MAX_ROUNDS
from gateway.cli.transport_failures import transport_failure
from gateway.domain.http.mcp_requests import header_value, request_body, request_headers
from gateway.errors import NotFound

_TIMEOUT = httpx.Timeout(120.0, connect=5.0)
_LIMIT_REACHED = 42900
_FORM = "elicitation/create"

AskForm = Callable[[JsonObject], JsonObject]
"""Shows a form with its message, and returns the response of the user."""


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
    """A client of a tenant's MCP URL with one credential; `ask` fills in the forms that tools show their user."""

    def __init__(
        self, url: str, key: str, *, ask: AskForm | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._url = url
        self._ask = ask
        self._unlisted: Failure | None = None
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

        A tool that is not listed may have this as an old name, so it is returned without a schema. If the gateway does
        not know it, its call fails with the nearest name.
        """
        names: list[str] = []
        for tool in self.tools():
            names.append(text_at(tool, "name"))
            if names[-1] == name:
                return tool
        near = get_close_matches(name, names, n=1)
        detail = f"no tool {name!r} at {self._url}"
        detail += f"; did you mean {near[0]!r}?" if near else ""
        self._unlisted = Failure(detail, ExitCode.NOT_FOUND)
        return {"name": name}

    def call(self, tool: JsonObject, arguments: JsonObject) -> JsonObject:
        """Return the result of a call; the result itself can be an error.

        Raises:
            Failure: the gateway refused or was not reached, or the tool requests input that this client cannot provide.
        """
        name = text_at(tool, "name")
        mirrored = mirrored_headers(tool.get("inputSchema"), arguments)
        called: JsonObject = {"name": name, "arguments": arguments}
        params = called
        for _ in range(MAX_ROUNDS):
            result = self._request("tools/call", params, name=name, extra=mirrored)
            if result.get("resultType", "complete") == "complete":
                return result
            params = {**called, **self._answers(name, result)}
        raise Failure(f"{name} requires input again and again")

    def _answers(self, name: str, result: JsonObject) -> JsonObject:
        """Return the parameters that answer the requests of an incomplete result."""
        requests = {key: to_object(one) for key, one in to_object(result.get("inputRequests")).items()}
        is_known = result.get("resultType") == "input_required" and isinstance(result.get("requestState"), str)
        if self._ask is None or not is_known or any(one.get("method") != _FORM for one in requests.values()):
            raise Failure(f"{name} requires further input, which this command does not support")
        answers = {key: self._ask(to_object(one.get("params"))) for key, one in requests.items()}
        return {"inputResponses": answers, "requestState": result["requestState"]}

    def _request(
        self,
        method: str,
        params: JsonObject,
        *,
        name: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> JsonObject:
        headers = {**request_headers(method, name=name), **(extra or {})}
        can_ask: JsonObject = {} if self._ask is None else {"elicitation": {"form": {}}}
        body = json.dumps(request_body(method, params, capabilities=can_ask)).encode()
        try:
            response = self._http.post(self._url, content=body, headers=headers)
        except httpx.TransportError as error:
            raise transport_failure(self._url, error) from None
        message = _message_of(response)
        if isinstance(message.get("result"), dict):
            return to_object(message["result"])
        if self._unlisted is not None and text_at(message, "error", "data", "code") == NotFound.code:
            raise self._unlisted
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
    if is_object(error) and code is ExitCode.NOT_FOUND:
        return Failure(f"{_describe_error(error)}: no such tenant, or the key requires --profile", code)
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
