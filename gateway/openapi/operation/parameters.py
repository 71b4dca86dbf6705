"""The parameters of an operation: the location and style of each, and the schema of its argument."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gateway.domain.http.headers import DESCRIBED, FRAMING, METHOD_FIELD, is_private
from gateway.domain.http.plans import BodyKind, FieldPlan, Location, ParameterPlan, Style
from gateway.domain.json_access import Object, as_list, as_object
from gateway.domain.sources import FilledParameter
from gateway.openapi.document.json_access import (
    NOTHING,
    Unusable,
    is_true_at,
    object_at,
    quote_text,
    text_at,
)
from gateway.openapi.document.plain_text import plain_text
from gateway.openapi.document.references import References
from gateway.openapi.operation.credential_headers import is_credential_header
from gateway.openapi.operation.file_parts import FileParts
from gateway.openapi.operation.form_fields import FormFields, inner_lists
from gateway.openapi.operation.limits import MAX_PARAMETERS
from gateway.openapi.operation.media_types import concrete, essence, is_json, is_media_type, is_xml
from gateway.openapi.schema.components import Components
from gateway.openapi.schema.examples import holder_examples
from gateway.openapi.schema.keywords import ANNOTATIONS
from gateway.openapi.schema.translation import Translated
from gateway.openapi.schema.xml import XmlNodes

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DELIMITED = (Style.SPACE, Style.PIPE, Style.TAB)
_STYLES: Mapping[Location, tuple[Style, ...]] = {
    Location.PATH: (Style.SIMPLE, Style.LABEL, Style.MATRIX),
    Location.QUERY: (Style.FORM, *_DELIMITED, Style.DEEP_OBJECT),
    Location.HEADER: (Style.SIMPLE,),
    Location.COOKIE: (Style.FORM, Style.COOKIE),
    Location.QUERYSTRING: (Style.FORM,),
}
"""The styles that each location allows, its default first. Tab-delimited lists come from Swagger 2.0."""

_RESERVED_FROM = {Location.QUERY: (3, 0), Location.PATH: (3, 2), Location.COOKIE: (3, 2)}
"""The first OpenAPI version in which a parameter of the location may leave reserved characters unencoded."""

_SCALARS = frozenset(("string", "number", "integer", "boolean", "null"))
_TAKE_EMPTY = frozenset((*ANNOTATIONS, "type", "maxLength"))
_TEXT = Translated(schema={"type": "string"})

_FORM_TYPE = "application/x-www-form-urlencoded"


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter. Its operation assigns the final argument name."""

    plan: ParameterPlan
    translated: Translated
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    where: str = ""

    @property
    def key(self) -> tuple[Location, str]:
        """The key that is unique among the parameters of one operation."""
        return self.plan.location, self.plan.name


class MergedParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of an operation, losses and notes, and the headers that are credentials: True if required."""

    parameters: Sequence[Parameter]
    losses: Sequence[str]
    notes: Sequence[str]
    credentials: Mapping[str, bool]

    def without(self, filled: Sequence[FilledParameter]) -> "MergedParameters":
        """Return the parameters without those that stored credentials of the source fill."""
        if not filled:
            return self
        keys = {_filled_key(one.location, one.name) for one in filled}
        return MergedParameters(
            parameters=[one for one in self.parameters if _filled_key(*one.key) not in keys],
            losses=self.losses,
            notes=self.notes,
            credentials={
                name: is_required
                for name, is_required in self.credentials.items()
                if _filled_key(Location.HEADER, name) not in keys
            },
        )


class Parameters:
    """The parameters of one document; a shared one is compiled once."""

    def __init__(self, references: References, components: Components, *, dialect: tuple[int, int]) -> None:
        self._references = references
        self._components = components
        self._dialect = dialect
        self._fields = FormFields(FileParts(references), dialect=dialect)
        self._read: dict[int, Parameter] = {}

    def merge(self, levels: Mapping[str, Sequence[object]]) -> MergedParameters:
        """Merge the parameters of all levels, by the position of the object that has them, outermost level first.

        An inner parameter replaces an outer parameter with the same location and name. Headers that are credentials are
        no parameters.

        Raises:
            Unusable: a parameter cannot be read, a required one cannot be sent, or there are too many or conflicting.
        """
        merged: dict[tuple[Location, str], Parameter] = {}
        credentials: dict[str, bool] = {}
        losses: list[str] = []
        notes: list[str] = []
        for where, level in levels.items():
            for index, node in enumerate(level):
                try:
                    parameter = self._one(node, f"{where}/parameters/{index}")
                except _Credential as credential:
                    credentials[credential.name] = credential.is_required
                    continue
                except _SetByConnection as header:
                    notes.append(header.reason)
                    continue
                except _Skipped as skipped:
                    losses.append(skipped.reason)
                    continue
                merged[parameter.key] = parameter
        if len(merged) > MAX_PARAMETERS:
            raise Unusable(f"it has more than {MAX_PARAMETERS} parameters")
        if len({location for location, _ in merged} & {Location.QUERY, Location.QUERYSTRING}) > 1:
            raise Unusable("it has a parameter for the whole query beside parameters in the query")
        losses += [loss for parameter in merged.values() for loss in parameter.losses]
        notes += [note for parameter in merged.values() for note in parameter.notes]
        return MergedParameters(parameters=list(merged.values()), losses=losses, notes=notes, credentials=credentials)

    def _one(self, node: object, where: str) -> Parameter:
        found = self._references.follow(node, "a parameter")
        if id(found) not in self._read:
            self._read[id(found)] = self._compile(found, where)
        return self._read[id(found)]

    def _compile(self, node: Object, where: str) -> Parameter:
        try:
            name, location = _identify(node)
            if location is Location.HEADER and is_credential_header(name):
                raise _Credential(name, is_required=is_true_at(node, "required") and not self._is_ignored(name))
            if location is Location.HEADER and name.lower() in DESCRIBED:
                raise _SetByConnection(f"the header {quote_text(name)} is set by the gateway, not by an argument")
            _check_name(name, location)
            return replace(self._described(node, self._planned(node, name, location, where)), where=where)
        except (_Skipped, _Credential):
            raise
        except Unusable as unusable:
            if is_true_at(node, "required") or node.get("in") == Location.PATH:
                raise
            raise _Skipped(f"{unusable.reason}; the tool has no argument for it") from unusable

    def _is_ignored(self, name: str) -> bool:
        """True for a header whose parameter OpenAPI 3 requires to be ignored, so that it does not become an
        argument.
        """
        return self._dialect >= (3, 0) and name.lower() in DESCRIBED

    def _planned(self, node: Object, name: str, location: Location, where: str) -> Parameter:
        is_required = location is Location.PATH or is_true_at(node, "required")
        if as_object(node.get("content")) is not None or location is Location.QUERYSTRING:
            media_type, schema = self._content(node, name)
            plan = ParameterPlan(
                argument=name,
                name=name,
                location=location,
                style=_STYLES[location][0],
                explode=_STYLES[location][0] is Style.FORM,
                required=is_required,
                media_type=media_type,
                fields=self._form_fields(media_type, schema),
            )
            if not _is_writable(media_type, schema):
                return Parameter(plan=plan, translated=_TEXT, losses=(_as_text(name, media_type),))
            return Parameter(plan=plan, translated=self._components.translate(schema.get("schema", {}), where))
        translated = self._components.translate(node.get("schema", {}), f"{where}/schema")
        style, notes = self._style(node, name, location, translated)
        explode = node.get("explode")
        plan = ParameterPlan(
            argument=name,
            name=name,
            location=location,
            style=style,
            explode=explode if isinstance(explode, bool) else style in {Style.FORM, Style.COOKIE},
            required=is_required,
            allow_reserved=self._may_reserve(location) and is_true_at(node, "allowReserved"),
            fields=inner_lists(node.get("schema")) if self._dialect == (2, 0) else (),
        )
        may_be_empty = location is Location.QUERY and is_true_at(node, "allowEmptyValue")
        return Parameter(plan=plan, translated=_with_empty(translated) if may_be_empty else translated, notes=notes)

    def _content(self, node: Object, name: str) -> tuple[str, Object]:
        content = object_at(node, "content")
        if len(content) != 1:
            raise Unusable(f"the parameter {quote_text(name)} has no single media type")
        media_type, media = next(iter(content.items()))
        found = self._references.follow(media, "a media type") if as_object(media) is not None else NOTHING
        if not is_media_type(media_type) or not (_is_writable(media_type, found) or is_xml(media_type)):
            raise Unusable(f"the parameter {quote_text(name)} is written as {quote_text(media_type)}, not supported")
        return concrete(media_type), found

    def _form_fields(self, media_type: str, media: Object) -> tuple[FieldPlan, ...]:
        if essence(media_type) != _FORM_TYPE:
            return ()
        return self._fields.plan(media, BodyKind.FORM, XmlNodes(self._references))[0]

    def _may_reserve(self, location: Location) -> bool:
        return location in _RESERVED_FROM and self._dialect >= _RESERVED_FROM[location]

    def _style(
        self, node: Object, name: str, location: Location, translated: Translated
    ) -> tuple[Style, tuple[str, ...]]:
        """The declared style. In Swagger 2.0 every location allows all list delimiters.

        For a single value, a style that the location does not allow is replaced by the default, with a note.
        """
        allowed = _STYLES[location]
        named = node.get("style", allowed[0].value)
        for style in (*allowed, *(_DELIMITED if self._dialect == (2, 0) else ())):
            if style.value == named:
                return style, ()
        quoted = quote_text(str(named))
        reason = f"the parameter {quote_text(name)} has the style {quoted}, which is not defined for its location"
        if not _is_scalar(translated):
            raise Unusable(reason)
        return allowed[0], (f"{reason}; {allowed[0]} is used",)

    def _described(self, node: Object, parameter: Parameter) -> Parameter:
        described = describe(parameter.translated, node)
        holders = [node, *map(as_object, object_at(node, "content").values())]
        found = [value for holder in holders if holder for value in holder_examples(holder, self._references)]
        return replace(parameter, translated=with_examples(described, found))


def describe(translated: Translated, node: Object) -> Translated:
    """Add the description and deprecation of the enclosing node to the schema."""
    notes: dict[str, object] = {}
    description = text_at(node, "description")
    if description is not None and (shown := plain_text(description)):
        notes["description"] = shown
    if is_true_at(node, "deprecated"):
        notes["deprecated"] = True
    if not notes or translated.schema is False:
        return translated
    schema = {} if isinstance(translated.schema, bool) else translated.schema
    return replace(translated, schema={**schema, **notes})


def with_examples(translated: Translated, values: Sequence[object]) -> Translated:
    """Add the examples of a parameter or body to those of its schema."""
    schema = translated.schema
    if not values or isinstance(schema, bool):
        return translated
    found = [*values, *(as_list(schema.get("examples")) or ())]
    return replace(translated, schema={**schema, "examples": found}, has_values=True)


class _Credential(Exception):
    """A header parameter that is a credential."""

    def __init__(self, name: str, *, is_required: bool) -> None:
        super().__init__(name)
        self.name = name
        self.is_required = is_required


class _Skipped(Unusable):
    """A parameter without an argument; its operation is compiled without the parameter."""


class _SetByConnection(_Skipped):
    """A header parameter that every request has without an argument."""


def _filled_key(location: Location, name: str) -> tuple[Location, str]:
    return location, name.lower() if location is Location.HEADER else name


def _identify(node: Object) -> tuple[str, Location]:
    name, location_name = text_at(node, "name"), node.get("in")
    if name is None:
        raise Unusable("a parameter has no name")
    if not isinstance(location_name, str) or location_name not in _LOCATIONS:
        raise Unusable(f"the parameter {quote_text(name)} has no valid location (`in`)")
    return name, _LOCATIONS[location_name]


_LOCATIONS = {location.value: location for location in Location}


def _check_name(name: str, location: Location) -> None:
    if location is Location.QUERY and name == METHOD_FIELD:
        raise Unusable(f"the query parameter {quote_text(name)} would change the method of the operation")
    if location not in {Location.HEADER, Location.COOKIE}:
        return
    if not _TOKEN.fullmatch(name):
        raise Unusable(f"the {location} parameter {quote_text(name)} has a name that is invalid for a {location}")
    if location is Location.COOKIE:
        return
    lower = name.lower()
    if lower in FRAMING:
        raise _SetByConnection(f"the header {quote_text(name)} is set by the connection, not by an argument")
    if is_private(name):
        raise Unusable(f"the header {quote_text(name)} is set by the gateway only")


def _with_empty(translated: Translated) -> Translated:
    """The schema with the empty text as an additional value, unless it is a plain text schema or a boolean."""
    schema = translated.schema
    if isinstance(schema, bool) or (schema.get("type", "string") == "string" and schema.keys() <= _TAKE_EMPTY):
        return translated
    return replace(translated, schema={"anyOf": [schema, {"const": ""}]}, count=translated.count + 2)


def _is_scalar(translated: Translated) -> bool:
    """True if the schema declares only scalar types."""
    named = None if isinstance(translated.schema, bool) else translated.schema.get("type")
    return all(isinstance(item, str) and item in _SCALARS for item in as_list(named) or (named,))


def _as_text(name: str, media_type: str) -> str:
    return f"the parameter {quote_text(name)} is {quote_text(media_type)}; its argument is a string in this format"


def _is_writable(media_type: str, media: Object) -> bool:
    """True if a value of this type can be written into a parameter: JSON, a form, or text."""
    name = essence(media_type)
    is_text = object_at(media, "schema").get("type") == "string"
    is_loose_text = name.startswith("text/") and not is_xml(media_type)
    return is_json(media_type) or name == _FORM_TYPE or is_text or is_loose_text
