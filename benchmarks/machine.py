"""Facts about the machine of a measurement: enough to judge the figures, nothing that identifies the machine."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

_SERVING = ("mcp", "starlette", "uvicorn", "uvloop", "httptools", "aiohttp")
_BEHIND = ("asyncpg", "redis", "jsonschema-rs", "msgspec")


def describe_machine(load_before: float, fastmcp: str | None) -> list[str]:
    """Return one line for each fact."""
    libraries = ", ".join(f"{name} {version(name)}" for name in (*_SERVING, *_BEHIND))
    peer = f"{fastmcp} in an environment of its own, on uvicorn with uvloop and httptools, JSON answers, no sessions"
    return [
        f"{len(os.sched_getaffinity(0))} cores, {_processor()}, {_memory_gb():.0f} GB of memory, {platform.system()}.",
        f"{platform.python_implementation()} {platform.python_version()}; {libraries}.",
        f"FastMCP: {peer if fastmcp else 'not measured'}.",
        f"Load average (1 min): {load_before:.1f} before, {os.getloadavg()[0]:.1f} at the end.",
        "Load generator, upstream, gateway, PostgreSQL and Redis share the cores: ratios carry over, rates do not.",
    ]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return named or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
