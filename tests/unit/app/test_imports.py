"""The packages that the program imports to serve and to print help: imports are nearly all of a start, and no test can
depend on a time."""

import subprocess
import sys

import pytest

from gateway.kinds.index import KINDS
from gateway.kinds.singletons import SINGLETONS

REPORT = """
import sys
print(*(name for name, module in sys.modules.items() if module is not None), file=sys.stderr)
"""
SERVE = f"""
from gateway.cli.commands.servers import import_serving
import_serving()
import gateway.app.server.serve
{REPORT}
"""
HELP = f"""
from gateway.cli.main import main
try:
    main()
except SystemExit as ended:
    assert not ended.code
{REPORT}
"""
EACH_HELP = """
import click, sys
from gateway.cli.deferred_imports import omit_unused
from gateway.cli.main import gateway
omit_unused()  # as the program does

def walk(context):
    context.get_help()
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            walk(click.Context(command.get_command(context, name), info_name=name, parent=context))
    print(context.command_path.replace(" ", "/"), *sys.modules, file=sys.stderr)

walk(click.Context(gateway, info_name="gateway"))
"""
"""Prints the help of each command in one process; after each, its path and the modules so far."""
AFTERWARDS = """
import sys, threading
from gateway.cli.deferred_imports import defer_imports
defer_imports()
import mcp.server.lowlevel
assert "mcp.client" not in sys.modules and "mcp.server.mcpserver" not in sys.modules

usual = sys.getswitchinterval()
sys.setswitchinterval(1e-6)
found, ready = [], threading.Barrier(4)
def read():
    ready.wait()
    from mcp import Client, types
    from mcp.server import MCPServer
    found.append((Client, types, MCPServer))
threads = [threading.Thread(target=read) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 4 and len(set(found)) == 1, found
sys.setswitchinterval(usual)

from mcp import Client
from mcp.client.client import Client as Same
from mcp.server import MCPServer, Server
import mcp.server.context
assert Client is Same and Server is mcp.server.lowlevel.Server and mcp.server.MCPServer is MCPServer
assert mcp.server.context.ServerRequestContext is mcp.server.ServerRequestContext
import opentelemetry.sdk.metrics, structlog
assert not hasattr(mcp, "nothing_of_this_name") and not hasattr(mcp, "__nothing__")
"""
SERVING = frozenset(
    {
        *(
            "starlette",
            "uvicorn",
            "httptools",
            "websockets",
            "anyio",
            "idna",
            "click",
            "python_multipart",
            "yarl",
            "multidict",
        ),
        *(
            "propcache",
            "websockets",
            "msgpack",
            "mcp",
            "mcp_types",
            "sse_starlette",
            "opentelemetry",
            "cryptography",
            "jwt",
        ),
        *("pydantic", "pydantic_core", "pydantic_settings", "annotated_types", "typing_inspection", "dotenv"),
        *("typing_extensions", "sqlalchemy", "asyncpg", "greenlet", "cython_runtime", "redis", "structlog"),
        *("msgspec", "orjson", "jsonschema_rs", "prometheus_client", "markupsafe"),
        "async_timeout",  # by redis, before Python 3.11.3
    }
)
"""Each is used by what serves, or is imported by one of the others at its own import."""
OF_PYTHON = frozenset({"__main__", "_distutils_hack", "sitecustomize"})
"""Modules that a start of Python imports; the last is Debian's."""
SPARED = frozenset(
    {
        *("mcp.client", "mcp.server.mcpserver", "opentelemetry.sdk", "opentelemetry.exporter"),
        *("sqlalchemy.dialects.mysql", "sqlalchemy.orm", "alembic"),
    }
)
UNUSED_BY_HELP = frozenset(
    {"pydantic", "pydantic_core", "sqlalchemy", "starlette", "structlog", "mcp", "redis", "asyncpg", "rich", "keyring"}
)
"""Libraries of the servers and of output: the help of a kind follows from its declaration, which needs none of them."""
OF_WORKERS = frozenset(
    {"gateway.openapi.compiler", "gateway.openapi.document.archive", "gateway.openapi.worker", "tarfile"}
)
"""Modules of the processes that read documents."""


def test_serving_imports_only_its_needs() -> None:
    """Ours: no Alembic, no ORM, no exporter of traces, no client of MCP, nothing of development; a new package is added
    here on purpose."""
    found = _imports(SERVE)
    packages = _packages(found)
    assert {"starlette", "mcp", "sqlalchemy"} <= packages
    assert {name for name in packages if not name.startswith("_")} <= SERVING
    assert not found & (SPARED | OF_WORKERS)


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["try", "--help"], ["migrate", "--help"]])
def test_help_imports_click_alone(arguments: list[str]) -> None:
    """Ours: help is printed without importing the gateway, an HTTP client or a library of the servers.

    Options of sources follow from their declaration, whose module reads JSON.
    """
    assert {"click"} <= _packages(_imports(HELP, *arguments)) <= {"click", "orjson"}


def test_the_help_of_each_kind_follows_from_declarations() -> None:
    """Ours: the help of no command imports a library of models, tables, routes or logs, so declarations need none."""
    shown = _run(EACH_HELP).splitlines()
    imported_by: dict[str, set[str]] = {}
    for path, *modules in map(str.split, shown):
        if found := _packages(set(modules)) & UNUSED_BY_HELP:
            imported_by[path] = found
    assert imported_by == {}
    commands = {line.partition(" ")[0].removeprefix("gateway/") for line in shown}
    names = [kind.name for kind in KINDS] + [single.name for single in SINGLETONS]
    assert [name for name in names if not {name.replace("_", "-"), name.replace("_", "/")} & commands] == []
    assert len(commands) > 200


def test_deferred_modules_can_be_imported_later() -> None:
    """Ours: an operator's handlers find the whole SDK, also in threads at once, and every library that was left out."""
    _imports(AFTERWARDS)


def _packages(modules: set[str]) -> set[str]:
    """Those of other people."""
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - OF_PYTHON - {"gateway"}


def _imports(program: str, *arguments: str) -> set[str]:
    """The modules of a process that ran the program."""
    return set(_run(program, *arguments).split())


def _run(program: str, *arguments: str) -> str:
    """The standard error of a process that ran the program."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr
