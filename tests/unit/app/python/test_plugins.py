"""Extras that the configuration names: found and registered, or the start ends with what is wrong where."""

import sys
from collections.abc import Generator

import pytest

from gateway.app.python.plugins import load_extras
from gateway.definitions.contract.tool_registry import ToolRegistry
from gateway.definitions.typed.definitions import ToolShape
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.errors import BrokenSetting, DuplicateToolError, HandlerInvalid
from gateway.settings import Settings

MODULE = """
from gateway.embed import ExtraPrompt, ExtraResource, ExtraResourceTemplate, ExtraTool, ToolRegistry

SCHEMA = {"type": "object", "properties": {}}


def say(context):
    return context.tenant


def tool(name):
    return ExtraTool(definition={"name": name, "description": "Says it.", "inputSchema": SCHEMA}, handler=say)


ONE = tool("one")
MANY = [tool("two"), tool("three")]
AGAIN = tool("one")
REGISTRY = ToolRegistry()
REGISTRY.register({"name": "four", "description": "Says it.", "inputSchema": SCHEMA}, say)
EMPTY = ToolRegistry()
EMPTY.register({"name": "five", "description": "Says it.", "inputSchema": SCHEMA})
BROKEN = ExtraTool(definition={"name": "six", "description": "", "inputSchema": SCHEMA}, handler=say)
MIXED = [tool("seven"), 7]
README = ExtraResource(definition={"uri": "docs://readme", "name": "readme"}, handler=say)
ROWS = ExtraResourceTemplate(definition={"uriTemplate": "db://rows/{id}", "name": "row"}, handler=say)
REVIEW = ExtraPrompt(definition={"name": "review"}, handler=say)


class Holder:
    inner = tool("inner")
"""


@pytest.fixture(scope="module", autouse=True)
def module(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Modules of an operator's, on the path for as long as these tests run."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "operators_extras.py").write_text(MODULE)
    (folder / "operators_mistake.py").write_text("raise RuntimeError('no licence file')\n")
    (folder / "operators_syntax.py").write_text("def :\n")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.startswith("operators_")]:
        del sys.modules[name]


def _settings(**more: tuple[str, ...]) -> Settings:
    return Settings.model_validate(more)


def test_everything_that_is_named_is_registered(module: None) -> None:
    """Ours: one extra, several, and a registry are all an attribute may be (PRG-2)."""
    registered = load_extras(
        _settings(
            extra_tools=(
                "operators_extras:ONE",
                "operators_extras:MANY",
                "operators_extras:REGISTRY",
                "operators_extras:Holder.inner",
            ),
            extra_resources=("operators_extras:README", "operators_extras:ROWS"),
            extra_prompts=("operators_extras:REVIEW",),
        )
    )
    names = [(shown.family, shown.name) for shown in registered.primitives()]

    assert names == [
        (Family.TOOL, "one"),
        (Family.TOOL, "two"),
        (Family.TOOL, "three"),
        (Family.TOOL, "four"),
        (Family.TOOL, "inner"),
        (Family.RESOURCE, "docs://readme"),
        (Family.TEMPLATE, "db://rows/{id}"),
        (Family.PROMPT, "review"),
    ]


@pytest.mark.parametrize(
    ("setting", "path", "reported"),
    [
        ("extra_tools", "operators_extras", "must be `module:attribute`"),
        ("extra_tools", ":ONE", "must be `module:attribute`"),
        ("extra_tools", "no_such_module:ONE", "No module named 'no_such_module'"),
        ("extra_tools", "operators_extras:NONE", "has no attribute 'NONE'"),
        ("extra_tools", "operators_mistake:ONE", "RuntimeError: no licence file"),
        ("extra_tools", "operators_syntax:ONE", "SyntaxError"),
        ("extra_tools", "operators_extras:SCHEMA", "is a dict"),
        ("extra_tools", "operators_extras:say", "is a function"),
        ("extra_tools", "operators_extras:MIXED", r"MIXED\[1\]: is a int"),
        ("extra_tools", "operators_extras:README", "is a ExtraResource"),
        ("extra_tools", "operators_extras:BROKEN", "description"),
        ("extra_tools", "operators_extras:EMPTY", "five was registered without a function"),
        ("extra_resources", "operators_extras:ONE", "is a ExtraTool"),
        ("extra_prompts", "operators_extras:ONE", "is a ExtraTool"),
    ],
)
def test_a_wrong_extra_ends_the_start_with_setting_object_and_field(setting: str, path: str, reported: str) -> None:
    """Ours: the message names the variable and the object (PRG-2)."""
    with pytest.raises(BrokenSetting, match=reported) as raised:
        load_extras(_settings(**{setting: (path,)}))

    assert raised.value.message.startswith(f"GATEWAY_{setting.upper()}: {path}")


def test_two_of_one_name_end_the_start() -> None:
    """Ours: a clash inside the configuration is found before anything is served (PRG-2, PRG-4)."""
    with pytest.raises(BrokenSetting, match="a tool named 'one' is registered already"):
        load_extras(_settings(extra_tools=("operators_extras:ONE", "operators_extras:AGAIN")))


def test_the_variables_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: several objects are separated by commas (PRG-2)."""
    monkeypatch.setenv("GATEWAY_EXTRA_TOOLS", "a:b, c.d:e ,")

    assert Settings().extra_tools == ("a:b", "c.d:e")  # type: ignore[call-arg]  # all have defaults


def test_a_tool_that_joins_a_served_registry_later_is_registered_or_refused() -> None:
    """Ours: a registry that the settings name is not read once only (PRG-2, PRG-4)."""
    registry = ToolRegistry()
    sys.modules["operators_extras"].__dict__["LATER"] = registry
    registered = load_extras(_settings(extra_tools=("operators_extras:ONE", "operators_extras:LATER")))
    definition: ToolShape = {"description": "Says it.", "inputSchema": {"type": "object", "properties": {}}}
    registry.register({"name": "eight", **definition}, repr, safety="safe")
    with pytest.raises(HandlerInvalid, match="nine was registered without a function"):
        registry.register({"name": "nine", **definition})
    with pytest.raises(DuplicateToolError, match="'one'"):
        registry.register({"name": "one", **definition}, repr)

    assert [(shown.name, shown.safety) for shown in registered.primitives()] == [
        ("one", Safety.MODERATE),
        ("eight", Safety.SAFE),
    ]
    assert len(registry) == 1
