"""Reader of a list of steps. A step is an object with exactly one verb; number, depth and sleep time are bounded."""

import re
from collections.abc import Callable, Mapping

from gateway.definitions.contract.elicitation_schemas import check_ask_schema
from gateway.definitions.contract.limits import MAX_TOOL_NAME_LENGTH
from gateway.definitions.field_reader import Faults, FieldReader
from gateway.definitions.handlers.fields import (
    DECLARED_RESULT_FIELDS,
    read_condition,
    read_declared_result,
    read_result_name,
    read_template,
    read_tree,
)
from gateway.definitions.handlers.limits import (
    MAX_QUESTIONS,
    MAX_SAMPLED_TOKENS,
    MAX_SLEEP_S,
    MAX_STEP_DEPTH,
    MAX_STEPS,
)
from gateway.definitions.handlers.requests import REQUEST_FIELDS, read_request, read_url
from gateway.definitions.handlers.specs import (
    AskStep,
    CallStep,
    GatherStep,
    HttpStep,
    IfStep,
    InputStep,
    LogStep,
    ProgressStep,
    ReturnStep,
    RootsStep,
    SampleStep,
    SleepStep,
    Step,
)
from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.domain.json_access import as_object, point
from gateway.domain.primitives import Family
from gateway.errors import TemplateInvalid

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
ASK_FIELDS = ("message", "schema", "url", "key")
SAMPLE_FIELDS = ("messages", "maxTokens", "systemPrompt", "temperature", "key")
VERBS_WITH_RESULT = ("ask", "sample", "roots", "call", "http")
"""Verbs whose result can be stored with `as`."""
QUESTIONS = ("ask", "sample", "roots")

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class StepsReader:
    """Reads the steps of one handler and counts them against its limits."""

    def __init__(self, family: Family, faults: Faults) -> None:
        self._family = family
        self._faults = faults
        self._count = 0
        self._sleep_s = 0.0
        self._keys: set[str] = set()

    def read(self, step_reader: FieldReader, name: str, depth: int = 1) -> tuple[Step, ...]:
        """Read the steps under a field."""
        if depth > MAX_STEP_DEPTH:
            step_reader.refuse(name, f"is nested more than {MAX_STEP_DEPTH} levels deep")
            return ()
        steps: list[Step] = []
        for index, raw in enumerate(step_reader.items(name, max_items=MAX_STEPS, min_items=1, required=True)):
            self._count += 1
            if self._count > MAX_STEPS:
                step_reader.refuse(name, f"has more than {MAX_STEPS} steps in total")
                break
            step = self._step(raw, step_reader.at(name) + point(index), depth)
            if step is not None:
                steps.append(step)
        return tuple(steps)

    def _step(self, raw: object, where: str, depth: int) -> Step | None:
        step_reader, verb = self._verb(raw, where, VERBS)
        if verb == "if":
            return self._if(step_reader, depth)
        return None if verb is None else _READERS[verb](self, step_reader)

    def _verb(self, raw: object, where: str, verbs: tuple[str, ...]) -> tuple[FieldReader, str | None]:
        step_reader = FieldReader(raw, (*verbs, "as"), where=where, faults=self._faults)
        given = [verb for verb in verbs if step_reader.has(verb)]
        if len(given) != 1:
            if step_reader.is_object:
                self._faults.add(where, f"must have exactly one of these verbs: {', '.join(verbs)}")
            return step_reader, None
        if step_reader.has("as") and given[0] not in VERBS_WITH_RESULT:
            step_reader.refuse("as", f"cannot be combined with '{given[0]}', which has no result")
        return step_reader, given[0]

    def progress(self, step_reader: FieldReader) -> Step | None:
        """Read a progress notification."""
        if as_object(step_reader.raw("progress")) is None:
            progress = _number(step_reader, "progress")
            return None if progress is None else ProgressStep(progress=progress)
        reader = FieldReader(
            step_reader.raw("progress"),
            ("progress", "total", "message"),
            where=step_reader.at("progress"),
            faults=self._faults,
        )
        progress, total = _number(reader, "progress", required=True), _number(reader, "total")
        message = read_template(reader, "message")
        return None if progress is None else ProgressStep(progress=progress, total=total, message=message)

    def log(self, step_reader: FieldReader) -> Step | None:
        """Read a log message."""
        if as_object(step_reader.raw("log")) is None:
            text = read_tree(step_reader, "log")
            if text is not None and not isinstance(text.source, str):
                step_reader.refuse("log", "must be a string, or an object with data")
            return None if text is None else LogStep(level="info", text=text)
        detail = FieldReader(
            step_reader.raw("log"), ("level", "data", "logger"), where=step_reader.at("log"), faults=self._faults
        )
        level = detail.choice("level", LEVELS) or "info"
        logger = detail.string("logger", max_length=200)
        data = read_tree(detail, "data", required=True)
        return None if data is None else LogStep(level=level, text=data, logger=logger)

    def sleep(self, step_reader: FieldReader) -> Step | None:
        """Read a pause; the total of all pauses is bounded."""
        seconds = step_reader.number("sleep", minimum=0, maximum=MAX_SLEEP_S)
        self._sleep_s += seconds or 0
        if self._sleep_s > MAX_SLEEP_S:
            step_reader.refuse("sleep", f"sleeps more than {MAX_SLEEP_S:g} seconds in total")
        return None if seconds is None else SleepStep(seconds=seconds)

    def ask(self, step_reader: FieldReader) -> InputStep | None:
        """Read a question to the user."""
        reader = FieldReader(step_reader.raw("ask"), ASK_FIELDS, where=step_reader.at("ask"), faults=self._faults)
        key = self._key(reader, step_reader, "ask")
        message = read_template(reader, "message", required=True)
        schema = reader.members("schema")
        if schema is not None:
            check_ask_schema(schema, reader.at("schema"), self._faults)
        url = read_url(reader, "url") if reader.has("url") else None
        if url is not None and not url.rest.is_constant:
            reader.refuse("url", "must not contain placeholders, because the URL could disclose the user's responses")
        if url is not None and schema is not None:
            reader.refuse("url", "cannot be combined with schema")
        keep_as = read_result_name(step_reader)
        return None if message is None else AskStep(key=key, message=message, schema=schema, url=url, keep_as=keep_as)

    def sample(self, step_reader: FieldReader) -> InputStep | None:
        """Read a sampling request to the client's model."""
        reader = FieldReader(
            step_reader.raw("sample"), SAMPLE_FIELDS, where=step_reader.at("sample"), faults=self._faults
        )
        key = self._key(reader, step_reader, "sample")
        messages = _messages(reader)
        max_tokens = reader.whole("maxTokens", minimum=1, maximum=MAX_SAMPLED_TOKENS, required=True)
        system_prompt = read_template(reader, "systemPrompt")
        temperature = reader.number("temperature", minimum=0, maximum=2)
        keep_as = read_result_name(step_reader)
        if messages is None or max_tokens is None:
            return None
        return SampleStep(
            key=key,
            messages=messages,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            keep_as=keep_as,
        )

    def roots(self, step_reader: FieldReader) -> InputStep | None:
        """Read a request for the client's roots."""
        reader = FieldReader(step_reader.raw("roots"), ("key",), where=step_reader.at("roots"), faults=self._faults)
        return RootsStep(key=self._key(reader, step_reader, "roots"), keep_as=read_result_name(step_reader))

    def gather(self, step_reader: FieldReader) -> Step | None:
        """Read several requests to the client that are sent in one round."""
        questions: list[InputStep] = []
        for index, raw in enumerate(step_reader.items("gather", max_items=MAX_QUESTIONS, min_items=1)):
            inner, verb = self._verb(raw, step_reader.at("gather") + point(index), QUESTIONS)
            question = None if verb is None else _QUESTION_READERS[verb](self, inner)
            if question is not None:
                questions.append(question)
        return GatherStep(questions=tuple(questions))

    def call(self, step_reader: FieldReader) -> Step | None:
        """Read a call of another tool."""
        called = FieldReader(
            step_reader.raw("call"), ("tool", "arguments"), where=step_reader.at("call"), faults=self._faults
        )
        tool = called.string("tool", max_length=MAX_TOOL_NAME_LENGTH, required=True)
        arguments = read_tree(called, "arguments") or Tree.parse({})
        if not isinstance(arguments.source, dict):
            called.refuse("arguments", "must be an object")
        keep_as = read_result_name(step_reader)
        return None if tool is None else CallStep(tool=tool, arguments=arguments, keep_as=keep_as)

    def http(self, step_reader: FieldReader) -> Step | None:
        """Read an HTTP request."""
        request = read_request(
            FieldReader(step_reader.raw("http"), REQUEST_FIELDS, where=step_reader.at("http"), faults=self._faults)
        )
        keep_as = read_result_name(step_reader)
        return None if request is None else HttpStep(http=request, keep_as=keep_as)

    def return_(self, step_reader: FieldReader) -> Step | None:
        """Read the result that ends the steps."""
        reader = FieldReader(
            step_reader.raw("return"), DECLARED_RESULT_FIELDS, where=step_reader.at("return"), faults=self._faults
        )
        return ReturnStep(result=read_declared_result(reader, self._family))

    def _if(self, step_reader: FieldReader, depth: int) -> Step | None:
        branch = FieldReader(
            step_reader.raw("if"), ("when", "then", "else"), where=step_reader.at("if"), faults=self._faults
        )
        when: Condition | None = read_condition(branch, "when")
        then = self.read(branch, "then", depth + 1)
        otherwise = self.read(branch, "else", depth + 1) if branch.has("else") else ()
        return None if when is None else IfStep(when=when, then=then, otherwise=otherwise)

    def _key(self, reader: FieldReader, step_reader: FieldReader, verb: str) -> str:
        """Return the key that identifies the request to the client; a repeated key is a fault."""
        key = reader.string("key", max_length=64)
        if key is not None and not _KEY.fullmatch(key):
            reader.refuse("key", "must consist of letters, digits and the characters _ . -")
        kept = step_reader.raw("as")
        if key is None:
            key = kept if isinstance(kept, str) and kept not in self._keys else f"{verb}-{len(self._keys) + 1}"
        if key in self._keys:
            reader.refuse("key", "is already used by another question")
        self._keys.add(key)
        return key


def _number(step_reader: FieldReader, name: str, *, required: bool = False) -> Tree | None:
    """Read a number, or a string template that yields one."""
    tree = read_tree(step_reader, name, required=required)
    if tree is None:
        return None
    is_number = isinstance(tree.source, int | float) and not isinstance(tree.source, bool)
    if not is_number and not (isinstance(tree.source, str) and not tree.is_constant):
        step_reader.refuse(name, "must be a number, or a template that yields one")
        return None
    return tree


def _messages(step_reader: FieldReader) -> Tree | None:
    """Read messages for a model; a string is one message with the role user."""
    step_reader.require("messages")
    raw = step_reader.raw("messages")
    if not isinstance(raw, str):
        tree = read_tree(step_reader, "messages")
        if tree is not None and not isinstance(tree.source, list):
            step_reader.refuse("messages", "must be a string or a list of messages")
        return tree
    try:
        Template.parse(raw)
    except TemplateInvalid as error:
        step_reader.faults.take(error, step_reader.at("messages"))
        return None
    return Tree.parse([{"role": "user", "content": {"type": "text", "text": raw}}])


_QUESTION_READERS: Mapping[str, Callable[[StepsReader, FieldReader], InputStep | None]] = {
    "ask": StepsReader.ask,
    "sample": StepsReader.sample,
    "roots": StepsReader.roots,
}
_READERS: Mapping[str, Callable[[StepsReader, FieldReader], Step | None]] = {
    "progress": StepsReader.progress,
    "log": StepsReader.log,
    "sleep": StepsReader.sleep,
    **_QUESTION_READERS,
    "gather": StepsReader.gather,
    "call": StepsReader.call,
    "http": StepsReader.http,
    "return": StepsReader.return_,
}
VERBS = (*_READERS, "if")
