"""Checks of a configured server: the file is read again, and its server is used as the client would use it."""

import json
import os
import subprocess

from gateway.cli.client.mcp_endpoint import McpClient
from gateway.cli.connect.files import ClientFile
from gateway.cli.connect.limits import PROGRAM_S
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_object


def count_listed(file: ClientFile, name: str) -> int:
    """Return the number of tools that the client finds at the server.

    Raises:
        Failure: it finds none: the gateway refuses or is not reached, or the program does not start.
    """
    entry = to_object(file.servers().get(name))
    if file.client.is_program:
        return _count_of_program(entry)
    url = next((as_text(value) for value in entry.values() if str(value).startswith(("http://", "https://"))), "")
    headers = to_object(entry.get("headers") or entry.get("http_headers"))
    with McpClient(url, as_text(headers.get("Authorization")).removeprefix("Bearer ")) as endpoint:
        return sum(1 for _ in endpoint.tools())


def _count_of_program(entry: JsonObject) -> int:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "gateway", "version": "1"}}
    requests = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    command = [text_at(entry, "command"), *map(as_text, to_list(entry.get("args")))]
    variables = {name: as_text(value) for name, value in to_object(entry.get("env")).items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    try:
        done = subprocess.run(  # noqa: S603  # the command that was just written
            command,
            input="".join(f"{json.dumps(one)}\n" for one in requests),
            env={**kept, **variables},
            capture_output=True,
            text=True,
            timeout=PROGRAM_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{command[0]} does not answer: {error}") from None
    try:
        answers = [to_object(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    except ValueError as error:
        raise Failure(f"{command[0]} prints something else than JSON: {error}") from None
    listed = next((one for one in answers if one.get("id") == requests[2]["id"]), None)
    if listed is None or "result" not in listed:
        reason = done.stderr.strip() or text_at(listed or {}, "error", "message")
        raise Failure(f"{command[0]} lists no tools: {reason}")
    return len(to_list(pick(listed, "result", "tools")))
