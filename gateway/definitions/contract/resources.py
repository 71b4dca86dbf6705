"""The strict contract of resource and resource template definitions."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.definitions.contract.limits import MAX_LINK_SIZE, MAX_TITLE_LENGTH
from gateway.definitions.contract.metadata import (
    read_annotations,
    read_description,
    read_icons,
    read_meta,
    read_mime_type,
    read_title,
)
from gateway.definitions.field_reader import Faults, FieldReader, copy_untrusted
from gateway.definitions.json_values import copy_containers
from gateway.definitions.uri.grammar import is_uri
from gateway.definitions.uri.templates import UriTemplate
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.errors import ResourceValidationError

FIELDS = ("uri", "name", "title", "description", "mimeType", "size", "annotations", "icons", "_meta")
TEMPLATE_FIELDS = ("uriTemplate", "name", "title", "description", "mimeType", "annotations", "icons", "_meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDefinition:
    """A resource as clients see it."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Mapping[str, object] | None = None
    icons: tuple[Mapping[str, object], ...] | None = None
    meta: Mapping[str, object] | None = None

    def to_wire(self) -> dict[str, object]:
        """Return the definition in wire format. Its lists and dictionaries are copies."""
        return _wire({"uri": self.uri, "name": self.name, "size": self.size}, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplateDefinition:
    """A family of resources as clients see it."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, object] | None = None
    icons: tuple[Mapping[str, object], ...] | None = None
    meta: Mapping[str, object] | None = None

    @property
    def template(self) -> UriTemplate:
        """The URI template, parsed for matching."""
        return UriTemplate.parse(self.uri_template)

    def to_wire(self) -> dict[str, object]:
        """Return the definition in wire format. Its lists and dictionaries are copies."""
        return _wire({"uriTemplate": self.uri_template, "name": self.name}, self)


def validate_resource_definition(raw: object) -> ResourceDefinition:
    """Return the resource definition in an object of the protocol, validated.

    Raises:
        ResourceValidationError: the object violates the contract. The message names the first wrong field; each fault
            has a JSON Pointer.
    """
    faults = Faults()
    reader = FieldReader(copy_untrusted(raw, ResourceValidationError, "definition"), FIELDS, where="", faults=faults)
    uri = reader.string("uri", max_length=MAX_URL_LENGTH, required=True)
    if uri is not None and not is_uri(uri):
        reader.refuse("uri", "must be an absolute URI, percent-encoded (RFC 3986)")
    definition = ResourceDefinition(
        uri=uri or "",
        name=reader.string("name", max_length=MAX_TITLE_LENGTH, required=True) or "",
        title=read_title(reader),
        description=read_description(reader),
        mime_type=read_mime_type(reader),
        size=reader.whole("size", minimum=0, maximum=MAX_LINK_SIZE),
        annotations=read_annotations(reader),
        icons=read_icons(reader),
        meta=read_meta(reader),
    )
    faults.raise_as(ResourceValidationError, "definition")
    return definition


def validate_resource_template_definition(raw: object) -> ResourceTemplateDefinition:
    """Return the resource template definition in an object of the protocol, validated.

    Raises:
        ResourceValidationError: the object violates the contract, or its URI template does not support matching.
    """
    faults = Faults()
    reader = FieldReader(
        copy_untrusted(raw, ResourceValidationError, "definition"), TEMPLATE_FIELDS, where="", faults=faults
    )
    definition = ResourceTemplateDefinition(
        uri_template=_uri_template(reader) or "",
        name=reader.string("name", max_length=MAX_TITLE_LENGTH, required=True) or "",
        title=read_title(reader),
        description=read_description(reader),
        mime_type=read_mime_type(reader),
        annotations=read_annotations(reader),
        icons=read_icons(reader),
        meta=read_meta(reader),
    )
    faults.raise_as(ResourceValidationError, "definition")
    return definition


def _uri_template(reader: FieldReader) -> str | None:
    text = reader.string("uriTemplate", max_length=MAX_URL_LENGTH, required=True)
    if text is None:
        return None
    try:
        lead = UriTemplate.parse(text).lead
    except ResourceValidationError as wrong:
        reader.faults.take(wrong, reader.at("uriTemplate"))
        return None
    if not is_uri(lead + "x"):
        reader.refuse("uriTemplate", "must begin with a literal scheme, such as notes://")
    return text


def _wire(own: dict[str, object], definition: ResourceDefinition | ResourceTemplateDefinition) -> dict[str, object]:
    fields = own | {
        "title": definition.title,
        "description": definition.description,
        "mimeType": definition.mime_type,
        "annotations": definition.annotations,
        "icons": None if definition.icons is None else list(definition.icons),
        "_meta": definition.meta,
    }
    return {name: copy_containers(value) for name, value in fields.items() if value is not None}
