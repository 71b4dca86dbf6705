"""The packages that a replica imports to serve: import time is most of a start, and no test can depend on a time."""

import subprocess
import sys

PROGRAM = """
import sys
import gateway.cli.serving
import gateway.app.build
known = sys.stdlib_module_names | {"__main__", "gateway"}
print(*sorted({name.partition(".")[0] for name in sys.modules if "." not in name or name.count(".") == 1} - known))
"""
SERVING = frozenset(
    {
        *("starlette", "uvicorn", "httptools", "anyio", "idna", "click", "python_multipart", "yarl", "multidict"),
        *("propcache", "mcp", "mcp_types", "sse_starlette", "httpx2", "opentelemetry", "psutil", "cryptography"),
        *("pydantic", "pydantic_core", "pydantic_settings", "annotated_types", "typing_inspection", "dotenv"),
        *("typing_extensions", "sqlalchemy", "asyncpg", "greenlet", "cython_runtime", "redis", "structlog"),
        *("msgspec", "orjson", "jsonschema_rs"),
    }
)
"""Each is used by what serves, or is imported by one of the others at its own import."""

FOR_DEVELOPERS = frozenset({"rich", "pygments", "attr", "attrs", "markdown_it", "mdurl"})
"""What `structlog` imports where it is installed; the image does not have it."""


def test_serving_imports_what_it_needs() -> None:
    """Ours: no Alembic, no client of the admin API, nothing of tests; a new package is added here on purpose."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    found = {name for name in done.stdout.split() if not name.startswith("_")}
    assert {"starlette", "mcp", "sqlalchemy"} <= found
    assert found - FOR_DEVELOPERS <= SERVING
