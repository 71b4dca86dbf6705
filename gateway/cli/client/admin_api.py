"""A client of the admin API for commands: requests, pagination, and problem documents as failures."""

import json
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType, TracebackType
from typing import Self

import httpx

from gateway.cli.client.locations import segment_of
from gateway.cli.exit_codes import ExitCode, exit_for_status
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, number_at, pick, text_at, to_object, to_objects
from gateway.cli.transport_failures import transport_failure
from gateway.domain.tenancy.keys import key_id_of
from gateway.errors import Fault

ROOT = "/admin/v1"
_PAGE_SIZE = 200
_TIMEOUT = httpx.Timeout(30.0, connect=5.0, read=600.0)
_REMEDIES = {
    "auth.unauthenticated": "give another with GATEWAY_OPERATOR_KEY or --key",
    "source.shrunk": "give --allow-removals to permit it",
    "source.removals_refused": "give --yes (REST: allow_removals) to permit it, or check with --dry-run",
    "upstream.egress_denied": "the operator permits it with `gateway tenant egress SLUG --allow host:port`",
}
"""Remedies by problem code, for refusals whose message does not name the options of the command line."""


def path_of(*parts: str) -> str:
    """Build a path of the admin API; each part becomes exactly one segment.

    Raises:
        Failure: a part cannot be a segment.
    """
    return "".join(f"/{segment_of(part)}" for part in parts)


class AdminApi:
    """A client of one gateway's admin API with one credential."""

    def __init__(
        self, url: str, key: str, *, timeout: httpx.Timeout = _TIMEOUT, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = url
        self.key_id = key_id_of(key)
        """The id of the tenant's key that this client sends; None for another credential."""
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, application/problem+json"}
        self._http = httpx.Client(
            base_url=url + ROOT,
            headers=headers,
            timeout=timeout,
            trust_env=False,
            transport=transport,
            verify=not url.startswith("http://"),  # reading the authorities takes 30 ms
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str) -> JsonObject:
        """Return one object.

        Raises:
            Failure: the gateway refused, or was not reached.
        """
        return to_object(self._request("GET", path).json())

    def get_with_tag(self, path: str) -> tuple[JsonObject, str | None]:
        """Return one object and its ETag, for a change that must not overwrite a concurrent change."""
        response = self._request("GET", path)
        return to_object(response.json()), response.headers.get("ETag")

    def send(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, if_match: str | None = None
    ) -> JsonObject:
        """Send a change; return the object in the response, or an empty object if the response has no content."""
        headers = {"If-Match": if_match} if if_match else {}
        content = None if body is None else json.dumps(body).encode()
        return self._change(method, path, content, headers)

    def has(self, path: str) -> bool:
        """True if the gateway has something at the path, of any size."""
        try:
            self._request("HEAD", path)
        except Failure as failure:
            if failure.exit_code == ExitCode.NOT_FOUND:
                return False
            raise
        return True

    def upload(
        self,
        method: str,
        path: str,
        chunks: Iterable[bytes],
        *,
        length: int,
        if_match: str | None = None,
        media_type: str = "application/json",
    ) -> JsonObject:
        """Send a change with a body that is streamed in chunks."""
        headers = {"Content-Length": str(length), "Content-Type": media_type}
        return self._change(method, path, chunks, headers | ({"If-Match": if_match} if if_match else {}))

    def pages(
        self, path: str, *, limit: int | None = None, query: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[JsonObject]:
        """Yield every item of a list that the query selects, page by page, at most `limit` items."""
        left, cursor = limit, None
        while left is None or left > 0:
            parameters = {**query, "limit": str(_PAGE_SIZE if left is None else min(left, _PAGE_SIZE))}
            page = to_object(
                self._request("GET", path, params=parameters | ({"cursor": cursor} if cursor else {})).json()
            )
            items = to_objects(page.get("items"))
            yield from items if left is None else items[:left]
            left = None if left is None else left - len(items)
            cursor = text_at(page, "next_cursor")
            if not cursor:
                return

    def download(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """Yield a response of any length in chunks.

        Raises:
            Failure: the gateway refused, was not reached, or ended the response early.
        """
        try:
            with self._http.stream("GET", path, params=query) as response:
                if not response.is_success:
                    response.read()
                    raise failure_from(response)
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise transport_failure(self.url, error) from None

    def _change(
        self, method: str, path: str, content: bytes | Iterable[bytes] | None, headers: Mapping[str, str]
    ) -> JsonObject:
        content_type = {} if content is None else {"Content-Type": "application/json"}
        response = self._request(method, path, content=content, headers={**content_type, **headers})
        return to_object(response.json()) if response.content else {}

    def _request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            response = self._http.request(method, path, params=params, content=content, headers=headers)
        except httpx.TransportError as error:
            raise transport_failure(self.url, error) from None
        if response.is_success:
            return _check_object(response)
        raise failure_from(response)


def failure_from(response: httpx.Response) -> Failure:
    """Convert an error response to a failure, with its problem document if it has one."""
    problem = to_object(_json_of(response))
    if not problem:
        return Failure(f"HTTP {response.status_code} {response.reason_phrase}", exit_for_status(response.status_code))
    message = text_at(problem, "detail") or text_at(problem, "title") or f"HTTP {response.status_code}"
    retry: str | None = response.headers.get("Retry-After")
    if retry:
        message += f"; retry in {retry} s"
    if remedy := _REMEDIES.get(text_at(problem, "code")):
        message += f"; {remedy}"
    if prefix := text_at(problem, "suggested_prefix"):
        message += f": --prefix {prefix}"
    notes = [text_at(problem, "code"), text_at(problem, "correlation_id")]
    message += f" [{' '.join(note for note in notes if note)}]" if any(notes) else ""
    is_too_early = response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    return Failure(
        message,
        exit_for_status(response.status_code),
        faults=[*_faults_of(problem), *_conflicts_of(problem)],
        retry_s=int(retry) if is_too_early and retry and retry.isdigit() else None,
    )


def _check_object(response: httpx.Response) -> httpx.Response:
    if response.content and not is_object(_json_of(response)):
        raise Failure(f"{response.url} did not respond with a JSON object: is it a gateway?", ExitCode.FAILED)
    return response


def _json_of(response: httpx.Response) -> object:
    try:
        value: object = response.json()
    except ValueError:
        return None
    return value


def _faults_of(problem: JsonObject) -> list[Fault]:
    return [
        Fault(
            pointer=text_at(error, "pointer"),
            reason=text_at(error, "reason"),
            line=number_at(error, "line") or None,
            column=number_at(error, "column") or None,
        )
        for error in to_objects(pick(problem, "errors"))
    ]


def _conflicts_of(problem: JsonObject) -> list[Fault]:
    return [
        Fault(pointer=text_at(conflict, "name"), reason=f"belongs to {text_at(conflict, 'owner')}")
        for conflict in to_objects(pick(problem, "conflicts"))
    ]
