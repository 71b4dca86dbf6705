"""Primitives named in the configuration as `module:attribute`: imported, checked and registered before serving starts.

An attribute is one extra, an iterable of extras, or a `ToolRegistry` whose tools have functions. Any error prevents
startup; its message names the setting and the object.
"""

import importlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import structlog

from gateway.app.python.primitives import (
    Extra,
    ExtraPrompt,
    ExtraResource,
    ExtraResourceTemplate,
    ExtraTool,
    to_registration,
)
from gateway.app.python.registrations import Registrations
from gateway.app.python.typed_handlers import tool_handler
from gateway.definitions.contract.tool_registry import RegisteredTool, ToolRegistry
from gateway.domain.primitives import Family
from gateway.errors import BrokenSetting, Fault, GatewayError, HandlerInvalid
from gateway.handlers.python.signatures import ToolFunction
from gateway.settings import PREFIX, Settings

log = structlog.get_logger(__name__)

_TYPES_BY_SETTING: Final[Mapping[str, tuple[type, ...]]] = {
    "extra_tools": (ExtraTool,),
    "extra_resources": (ExtraResource, ExtraResourceTemplate),
    "extra_prompts": (ExtraPrompt,),
}


def load_extras(settings: Settings) -> Registrations:
    """Load the Python objects that the settings name.

    Raises:
        BrokenSetting: an object cannot be imported, is not an extra or violates the contract, or its name is taken.
    """
    registrations = Registrations()
    for setting, wanted in _TYPES_BY_SETTING.items():
        for path in cast(tuple[str, ...], getattr(settings, setting)):
            location = f"{PREFIX}{setting.upper()}: {path}"
            found = _import(path, location)
            if isinstance(found, ToolRegistry) and ExtraTool in wanted:
                with _named_in_errors(location):
                    serve_registry(found, registrations)
                continue
            for label, extra in _extras_in(found, location, wanted):
                with _named_in_errors(label):
                    registrations.add(to_registration(extra))
    return registrations


def serve_registry(registry: ToolRegistry, registrations: Registrations) -> None:
    """Register the tools of a registry, and each tool that is added to it later.

    Raises:
        GatewayError: a tool has no function, or its name is taken; no tool of the registry is registered.
    """

    def serve(tool: RegisteredTool) -> Callable[[], object]:
        if not callable(tool.handler):
            text = f"the tool {tool.name} was registered without a function"
            raise HandlerInvalid(text, faults=[Fault(pointer="/handler", reason=text)])
        handler = cast(ToolFunction, tool.handler) if tool.typed is None else tool_handler(tool.typed)
        registrations.add(to_registration(ExtraTool(definition=tool.definition, handler=handler, safety=tool.safety)))
        return lambda: registrations.remove(tool.name, Family.TOOL)

    registry.attach(serve)


def _import(path: str, location: str) -> object:
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise BrokenSetting(f"{location}: must be `module:attribute`")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise BrokenSetting(f"{location}: {error}") from error
    except Exception as error:  # the operator's module can raise any exception on import
        log.exception("extra_import_failed", path=path)
        raise BrokenSetting(f"{location}: cannot be imported: {type(error).__name__}: {error}") from error
    return cast(object, found)


def _extras_in(found: object, location: str, wanted: tuple[type, ...]) -> Iterator[tuple[str, Extra]]:
    """Yield each extra of an attribute, with its label for messages."""
    if isinstance(found, wanted):
        yield location, cast(Extra, found)
        return
    for number, each in enumerate(_iterate(found, location, wanted)):
        if not isinstance(each, wanted):
            raise BrokenSetting(f"{location}[{number}]: is a {type(each).__name__}, not {_describe_types(wanted)}")
        yield f"{location}[{number}]", cast(Extra, each)


def _iterate(found: object, location: str, wanted: tuple[type, ...]) -> Iterable[object]:
    kind = type(found).__name__
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping | ToolRegistry):
        raise BrokenSetting(f"{location}: is a {kind}, not {_describe_types(wanted)} or an iterable of them")
    return cast(Iterable[object], found)


def _describe_types(kinds: tuple[type, ...]) -> str:
    return " or ".join(f"an {kind.__name__}" for kind in kinds)


@contextmanager
def _named_in_errors(label: str) -> Generator[None]:
    """Raise a refused registration as BrokenSetting with this label."""
    try:
        yield
    except GatewayError as error:
        raise BrokenSetting(f"{label}: {_message(error)}") from error


def _message(error: GatewayError) -> str:
    fault_texts = "; ".join(f"{fault.pointer or '/'}: {fault.reason}" for fault in error.faults)
    return f"{error.message} ({fault_texts})" if fault_texts and fault_texts not in error.message else error.message
