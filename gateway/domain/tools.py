"""Effective tools of a tenant, from any origin."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.domain.identifiers import OperationId, PrimitiveId, SourceId
from gateway.domain.tenancy.policy import Levels, Safety

_NO_OPERATION, _NO_SOURCE, _NO_PRIMITIVE = OperationId(""), SourceId(""), PrimitiveId("")


FULL_INPUT_META: Final = "gateway/fullInputSchema"
"""The member of `_meta` of a listed definition whose input schema is shortened: the digest of the full one."""


FIELDS = "_fields"
"""The argument with which callers select parts of a result."""


class PrimitiveOrigin(StrEnum):
    """Origin of a primitive."""

    SOURCE = "source"
    CUSTOM = "custom"
    CODE = "code"
    BUILTIN = "builtin"
    LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One effective tool: its definition as listed (JSON bytes of the protocol's Tool) and the data to run it.

    An imported operation has `operation`, `source`, `identity` and `plan`. A custom tool has `primitive` and `handler`
    (the declared handler as JSON bytes); that of a live source also has `source_name`. A tool of code or a built-in
    tool has neither; its handler is found by name.
    """

    name: str
    definition: bytes
    safety: Safety
    safety_reasons: tuple[str, ...]
    origin: PrimitiveOrigin
    operation: OperationId = _NO_OPERATION
    source: SourceId = _NO_SOURCE
    source_name: str = ""
    identity: str = ""
    plan: bytes = b""
    primitive: PrimitiveId = _NO_PRIMITIVE
    handler: bytes = b""
    tags: tuple[str, ...] = ()
    """Tags of the operation; profiles select by them."""
    pinned: bytes = b""
    """Arguments that an override fixes, as a JSON object; they are not part of the definition."""
    result: bytes = b""
    """Projection of JSON responses set by an override, as a JSON object."""
    counted: Safety | None = None
    """The level for policy decisions, if stricter than `safety`; see `Primitive.level`."""
    levels: Levels | None = None
    """Declared and assessed level of a custom tool, if they differ; each call records them."""

    @property
    def is_shortened(self) -> bool:
        """True if an imported tool lists a shortened input schema; calls are validated against the full one."""
        return self.origin is PrimitiveOrigin.SOURCE and FULL_INPUT_META.encode() in self.definition

    @property
    def level(self) -> Safety:
        """The level for policy decisions."""
        return self.counted or self.safety


def digest_input(schema: bytes) -> str:
    """Return the digest of a full input schema, as the listed definition has it."""
    return hashlib.blake2b(schema, digest_size=12).hexdigest()
