"""A FastMCP server made from an OpenAPI document; run by path with the Python of its own environment.

It imports nothing of the gateway. `serve DOCUMENT UPSTREAM PORT` serves the document over streamable HTTP; `load
DOCUMENT` prints the cost of making the server.
"""

import json
import sys
import time
from pathlib import Path

import httpx2
import uvicorn
import yaml
from fastmcp import FastMCP  # type: ignore[import-not-found]  # an environment of its own


def main() -> None:
    """Run the command in the arguments."""
    verb, document, *rest = sys.argv[1:]
    if verb == "load":
        before, started, used = _memory_mb("VmRSS"), time.perf_counter(), time.process_time()
        server = FastMCP.from_openapi(_read(document), client=httpx2.AsyncClient(base_url="http://127.0.0.1:9"))
        tools = sum(len(getattr(provider, "_tools", ())) for provider in server.providers)
        taken = {"seconds": time.perf_counter() - started, "cpu_s": time.process_time() - used}
        seen = {**taken, "peak_mb": _memory_mb("VmHWM") - before, "tools": tools}
        print(json.dumps(seen))
        return
    upstream, port = rest
    server = FastMCP.from_openapi(_read(document), client=httpx2.AsyncClient(base_url=upstream), name="bench")
    app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
    uvicorn.run(app, port=int(port), log_level="error", access_log=False, loop="uvloop", http="httptools")


def _read(document: str) -> dict[str, object]:
    raw = Path(document).read_bytes()
    parsed: dict[str, object] = json.loads(raw) if raw.lstrip()[:1] == b"{" else yaml.load(raw, yaml.CSafeLoader)
    return parsed


def _memory_mb(kind: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{kind}:"))


if __name__ == "__main__":
    main()
