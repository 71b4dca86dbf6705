"""`gateway resource watch`: subscribes to resources as a client and prints each update."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import click
import httpx

from gateway.cli.contexts.chosen import tenant_key
from gateway.cli.exit_codes import ExitCode, exit_for_status
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_list, to_object
from gateway.cli.input.options import chosen_mcp_url, mcp_options, wants_json
from gateway.cli.output.printing import echo
from gateway.cli.transport_failures import transport_failure
from gateway.domain.http.mcp_requests import request_body, request_headers

_LISTEN = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_UPDATED = "notifications/resources/updated"
_STREAM = "text/event-stream"
_TIMEOUT = httpx.Timeout(10.0, read=None)
_PAUSE_RANGE_S = (0.2, 5.0)


@click.command("watch")
@click.argument("uris", nargs=-1, required=True, metavar="URI...")
@click.option("--count", type=click.IntRange(min=1), help="Exit after this number of updates; default: on Ctrl-C.")
@mcp_options
def watch_resource(uris: tuple[str, ...], count: int | None) -> None:
    """Subscribe to the resources at URI as a client, and print a line for each update that arrives.

    Uses the tenant's key, as `gateway call` does. When the connection to the gateway ends, it subscribes again.
    """
    url, as_json = chosen_mcp_url(), wants_json()
    with httpx.Client(headers={"Authorization": f"Bearer {tenant_key(url)}"}, trust_env=False) as http:
        follower = ResourceWatcher(http, url, uris, report=lambda text: echo(text, err=True))
        for number, uri in enumerate(follower.updates(), 1):
            at = datetime.now().astimezone().isoformat(timespec="milliseconds")
            echo(json.dumps({"at": at, "updated": uri}) if as_json else f"{at}  {uri}")
            if number == count:
                return


class ResourceWatcher:
    """A subscription to resources, which is renewed when its stream ends."""

    def __init__(self, http: httpx.Client, url: str, uris: tuple[str, ...], *, report: Callable[[str], None]) -> None:
        self._http = http
        self._url = url
        self._uris = uris
        self._report = report
        self._has_received = False

    def updates(self) -> Iterator[str]:
        """Yield the URI of each update; does not end by itself.

        Raises:
            Failure: the first attempt was refused or got no response, or a later one was refused permanently.
        """
        pause = _PAUSE_RANGE_S[0]
        while True:
            try:
                for message in self._listen():
                    pause = _PAUSE_RANGE_S[0]
                    if message.get("method") == _UPDATED:
                        yield text_at(message, "params", "uri")
            except httpx.TransportError as error:
                if not self._has_received:
                    raise transport_failure(self._url, error) from None
            except Failure as failure:
                if not self._has_received or failure.exit_code is not ExitCode.BUSY:
                    raise
            self._report("reconnected; changes in between may have been missed")
            time.sleep(pause)  # no event announces that the gateway is back
            pause = min(pause * 2, _PAUSE_RANGE_S[1])

    def _listen(self) -> Iterator[JsonObject]:
        body = request_body(_LISTEN, {"notifications": {"resourceSubscriptions": list(self._uris)}})
        request = self._http.stream("POST", self._url, json=body, headers=request_headers(_LISTEN), timeout=_TIMEOUT)
        with request as response:
            if not response.is_success or not response.headers.get("Content-Type", "").startswith(_STREAM):
                response.read()
                raise _failure_from(response)
            for line in response.iter_lines():
                if line.startswith("data:"):
                    message = _read(line.removeprefix("data:"))
                    self._check(message)
                    yield message
        if not self._has_received:
            raise Failure(f"{self._url} closed the stream before it confirmed the subscriptions")

    def _check(self, message: JsonObject) -> None:
        if "error" in message:
            raise Failure(text_at(message, "error", "message") or "refused")
        if message.get("method") != _ACKNOWLEDGED:
            return
        granted = to_list(pick(message, "params", "notifications", "resourceSubscriptions"))
        missing = [uri for uri in self._uris if uri not in granted]
        if missing:
            raise Failure(f"this key cannot read a resource {missing[0]!r}", ExitCode.NOT_FOUND)
        self._has_received = True
        self._report(f"following {', '.join(self._uris)}")


def _read(text: str) -> JsonObject:
    try:
        return to_object(json.loads(text))
    except ValueError:
        return {}


def _failure_from(response: httpx.Response) -> Failure:
    problem = _read(response.text)
    text = text_at(problem, "error", "message") or text_at(problem, "detail")
    if response.is_success:
        return Failure(text or f"{response.url} did not respond as an MCP server")
    return Failure(
        text or f"HTTP {response.status_code} {response.reason_phrase}", exit_for_status(response.status_code)
    )
