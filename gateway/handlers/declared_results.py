"""Declared results of handlers: constants, and templates with placeholders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from gateway.definitions.handlers.output_contracts import with_text
from gateway.definitions.handlers.specs import StaticSpec, TemplateSpec
from gateway.domain.results import ABSENT
from gateway.errors import HandlerFailed
from gateway.handlers.interfaces import Call
from gateway.handlers.result_forms import Blocks, ResultForm

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StaticAction(Generic[_Result]):
    """Returns a constant result."""

    spec: StaticSpec
    form: ResultForm[_Result]

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Result:
        """Return the declared result."""
        del arguments, call
        spec = self.spec
        structured = ABSENT if spec.structured_content is None else spec.structured_content
        blocks = spec.content or spec.contents or spec.messages
        return self.form.of_blocks(blocks, structured=structured, is_error=spec.is_error)


@dataclass(frozen=True, slots=True)
class TemplateAction(Generic[_Result]):
    """Fills the placeholders of a declared result."""

    spec: TemplateSpec
    form: ResultForm[_Result]

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Result:
        """Return the result for these arguments."""
        del call
        return fill(self.spec, variables_of(arguments), self.form)


def variables_of(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the variables of templates: each argument by its name, and the mapping of all arguments as `arguments`."""
    return {**arguments, "arguments": dict(arguments)}


def fill(spec: TemplateSpec, variables: Mapping[str, object], form: ResultForm[_Result]) -> _Result:
    """Return the result with its placeholders filled.

    Raises:
        TemplateFailed: a template exceeded a limit, or a value has an unsupported type.
        HandlerFailed: the result is not JSON, or not a list of objects where one is needed.
    """
    if spec.text is not None:
        return form.of_text(spec.text.render(variables), mime_type=spec.mime_type, is_error=spec.is_error)
    if spec.json is not None:
        return form.of_json(spec.json.render(variables), mime_type=spec.mime_type, is_error=spec.is_error)
    tree = spec.content or spec.contents or spec.messages
    blocks = None if tree is None else tree.render(variables)
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in cast("list[object]", blocks)):
        raise HandlerFailed("the template does not render to a list of contents")
    return form.of_blocks([with_text(block) for block in cast("Blocks", blocks)], is_error=spec.is_error)
