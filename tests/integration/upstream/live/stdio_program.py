"""An MCP server on standard streams that does what a test calls for; run as a program of its own."""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

LOCK = threading.Lock()
ANSWERS: dict[object, Any] = {}
ARRIVED = threading.Condition()


def write(message: object) -> None:
    """Write one line."""
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(identifier: object, text: object) -> None:
    """Write the result of a call."""
    content = [{"type": "text", "text": text if isinstance(text, str) else json.dumps(text)}]
    write({"jsonrpc": "2.0", "id": identifier, "result": {"content": content}})


def ask(identifier: object) -> Any:
    """Ask the client, and wait for its answer."""
    key = f"q{identifier}"
    write({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": {"message": "?"}})
    with ARRIVED:
        ARRIVED.wait_for(lambda: key in ANSWERS)
    return ANSWERS[key]


def environment(message: dict[str, Any]) -> object:
    """The variables of this process."""
    del message
    return dict(os.environ)


def limits(message: dict[str, Any]) -> object:
    """The limits of this process."""
    del message
    return [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)]


def group(message: dict[str, Any]) -> object:
    """This process, a child of it, and its process group."""
    del message
    return [os.getpid(), subprocess.Popen(["sleep", "600"]).pid, os.getpgrp()]


def progress(message: dict[str, Any]) -> object:
    """Report progress as often as the arguments request."""
    token = message["params"]["_meta"]["progressToken"]
    for _ in range(int(message["params"]["arguments"]["times"])):
        write({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    return "done"


def questions(message: dict[str, Any]) -> object:
    """Log, ask as often as the arguments request without waiting for an answer, and report an update."""
    write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "begin"}})
    for number in range(int(message["params"]["arguments"]["times"])):
        write({"jsonrpc": "2.0", "id": f"n{number}", "method": "elicitation/create", "params": {"message": "?"}})
    write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x:"}})
    return None


def updates(message: dict[str, Any]) -> object:
    """Report updates of a resource as often as the arguments request."""
    for _ in range(int(message["params"]["arguments"]["times"])):
        write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x:"}})
    return "done"


def chatter(message: dict[str, Any]) -> object:
    """Write many notifications that belong to no request, and never answer."""
    del message
    for _ in range(20_000):
        write({"jsonrpc": "2.0", "method": "notifications/x"})
    return None


def long(message: dict[str, Any]) -> object:
    """Write a line that does not end, and never answer."""
    del message
    sys.stdout.write("x" * (11 << 20))
    sys.stdout.flush()
    return None


def noise(message: dict[str, Any]) -> object:
    """Write much to standard error."""
    del message
    sys.stderr.write("\x1b[31mnoise " * 100_000)
    sys.stderr.flush()
    return "done"


def printing(message: dict[str, Any]) -> object:
    """Print lines that are no messages: words, a log entry, and a list. Return the number of this process."""
    del message
    for line in ("starting...", json.dumps({"level": "info", "msg": "ready"}), "[1, 2]", "\x1b[32mok\x1b[0m"):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return str(os.getpid())


def garbled(message: dict[str, Any]) -> object:
    """Respond with a message that is not valid JSON."""
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": {{"a": 1, "a": 2}}}}\n')
    sys.stdout.flush()
    return None


def late(message: dict[str, Any]) -> object:
    """Log once; when the tool `resume` is called, log and ask, and respond."""
    write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "waiting"}})
    with ARRIVED:
        ARRIVED.wait_for(lambda: "resume" in ANSWERS)
    write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "late secret"}})
    answered = ask(message["id"])
    with ARRIVED:
        ANSWERS["late"] = answered
        ARRIVED.notify_all()
    return "late"


def resume(message: dict[str, Any]) -> object:
    """Let the tool `late` go on; return the answer to its question."""
    del message
    with ARRIVED:
        ANSWERS["resume"] = True
        ARRIVED.notify_all()
        ARRIVED.wait_for(lambda: "late" in ANSWERS)
    return ANSWERS["late"]


def silent(message: dict[str, Any]) -> object:
    """Log once, and never answer."""
    del message
    write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "waiting"}})
    return None


TOOL_LIST: list[dict[str, Any]] = [{"name": "t", "inputSchema": {}}]
TOOLS: dict[str, Callable[[dict[str, Any]], object]] = {
    "environment": environment,
    "limits": limits,
    "group": group,
    "ask": lambda message: ask(message["id"]),
    "progress": progress,
    "questions": questions,
    "updates": updates,
    "chatter": chatter,
    "long": long,
    "noise": noise,
    "printing": printing,
    "garbled": garbled,
    "exit": lambda message: os._exit(3),
    "silent": silent,
    "late": late,
    "resume": resume,
    "cancelled": lambda message: str(ANSWERS.get("cancelled")),
    "ok": lambda message: "done",
}


def call(message: dict[str, Any]) -> None:
    """Run one tool."""
    value = TOOLS[message["params"]["name"]](message)
    if value is not None:
        answer(message["id"], value)


def main() -> None:
    """Read messages until the input ends."""
    if "--banner" in sys.argv:
        print("my server is up", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            found: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}}
            write({"jsonrpc": "2.0", "id": message["id"], "result": found | {"serverInfo": {"name": "stdio"}}})
        elif method == "tools/list":
            write({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": TOOL_LIST}})
        elif method == "tools/call":
            threading.Thread(target=call, args=(message,), daemon=True).start()
        elif method == "notifications/cancelled":
            ANSWERS["cancelled"] = message["params"]["requestId"]
        elif method is None:
            with ARRIVED:
                ANSWERS[message["id"]] = message.get("result") or message["error"]
                ARRIVED.notify_all()
    if "--stubborn" in sys.argv:
        time.sleep(600)


if __name__ == "__main__":
    main()
