"""The rules can fail: each way to start a thread or to read slow floats is found, however its name is imported."""

from pathlib import Path

import pytest

from tests.refused_calls import ALLOWED, METHODS, REFUSED, complaints

NAMES = [name.rsplit(".", 1) for name in REFUSED if "." in name]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        *((f"from {module} import {name}", f"{module}.{name}") for module, name in NAMES),
        *((f"import {module} as m\nm.{name}", f"{module}.{name}") for module, name in NAMES),
        *((f"loop.{method}(None, f)", method) for method in METHODS),
        ("import anyio.to_thread", "anyio.to_thread"),
        ("import anyio\nawait anyio.to_thread.run_sync(f)", "anyio.to_thread"),
        ("from anyio.to_thread import run_sync", "anyio.to_thread"),
        ("from multiprocessing.pool import ThreadPool", "multiprocessing"),
        ("import multiprocessing", "multiprocessing"),
    ],
)
def test_each_way_to_start_a_thread_is_refused(source: str, name: str, tmp_path: Path) -> None:
    """ISO-3: a pool without a size of its own lets one tenant's work stop all (security finding 1 of 2026-11-28)."""
    module = tmp_path / "gateway" / "calls.py"
    module.parent.mkdir()
    module.write_text(source)
    found = [each for each in complaints(tmp_path) if each.startswith("gateway/calls.py:")]

    assert found
    assert all(f" {name}: " in each and each.endswith("; use run_in_thread") for each in found)


def test_a_plain_function_of_a_route_is_refused(tmp_path: Path) -> None:
    """Ours: Starlette runs such a function in the forty threads of all tenants (ISO-3)."""
    module = tmp_path / "gateway" / "health.py"
    module.parent.mkdir()
    lines = (
        "from starlette.routing import Route as Path",
        "def plain(request): ...",
        "async def page(request): ...",
        "ROUTES = [Path('/', plain), Path('/', endpoint=plain), Path('/', page), Path('/', page(plain))]",
    )
    module.write_text("\n".join(lines))

    found = [each for each in complaints(tmp_path) if each.startswith("gateway/health.py:")]
    assert [each.split()[1] for each in found] == ["plain:", "plain:"]


@pytest.mark.parametrize(
    "call",
    [
        "msgspec.json.decode(raw)",
        "msgspec.json.decode(raw, type=dict[str, Any])",
        "msgspec.json.Decoder().decode",
        "msgspec.json.Decoder(dict[str, object])",
        "json.Decoder(type=object, float_hook=float)",
    ],
)
def test_json_of_any_type_has_one_decoder(call: str, tmp_path: Path) -> None:
    """ISO-2: 1 MB of such floats as 1.5e300 would hold up every tenant for a second."""
    module = tmp_path / "gateway" / "calls.py"
    module.parent.mkdir()
    module.write_text(f"import msgspec\nfrom msgspec import json\nmsgspec.json.decode(raw, type=Row)\n{call}")

    found = [each for each in complaints(tmp_path) if each.startswith("gateway/calls.py:")]
    assert [each.split()[0] for each in found] == ["gateway/calls.py:4"]


def test_a_permission_that_nothing_uses_is_reported(tmp_path: Path) -> None:
    """Ours: the list of permissions does not outlive its reasons (ISO-3)."""
    unused = [f"{path} {name}: is allowed, but not used" for path, names in ALLOWED.items() for name in names]

    assert list(complaints(tmp_path)) == sorted(unused)
