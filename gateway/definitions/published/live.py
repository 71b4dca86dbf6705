"""Published JSON Schemas of the settings of live sources, by kind."""

from collections.abc import Mapping

from gateway.definitions.live.limits import MAX_ARGUMENTS, MAX_HEADERS, MAX_TEXT_LENGTH, MAX_TIMEOUT_S, MAX_VARIABLES
from gateway.definitions.live.settings import ADDRESS, HEADER, SOCKET, TRANSPORTS, VARIABLE
from gateway.definitions.published.definitions import Schema, closed, text
from gateway.domain.live_sources import LiveKind
from gateway.domain.members.limits import MAX_URL_LENGTH

_TIMEOUT: Schema = {"type": "number", "minimum": 1, "maximum": MAX_TIMEOUT_S}
_TEXT: Schema = {"type": "string", "maxLength": MAX_TEXT_LENGTH}


def _pairs(name: str, limit: int) -> Schema:
    names: Schema = {"pattern": f"^{name}$"}
    return {"type": "object", "propertyNames": names, "additionalProperties": _TEXT, "maxProperties": limit}


LIVE_SETTINGS: Mapping[LiveKind, Schema] = {
    LiveKind.MCP: closed(
        ("url",),
        url=text(MAX_URL_LENGTH, format="uri"),
        transport={"enum": list(TRANSPORTS)},
        headers=_pairs(HEADER, MAX_HEADERS),
        timeout_s=_TIMEOUT,
    ),
    LiveKind.NEOVIM: closed(
        ("address",),
        address={"type": "string", "anyOf": [{"pattern": f"^{SOCKET}$"}, {"pattern": f"^{ADDRESS}$"}]},
        timeout_s=_TIMEOUT,
    ),
    LiveKind.AGENT: closed(),
    LiveKind.COMMAND: closed(
        ("argv",),
        argv={"type": "array", "minItems": 1, "maxItems": MAX_ARGUMENTS, "items": _TEXT},
        env=_pairs(VARIABLE, MAX_VARIABLES),
        timeout_s=_TIMEOUT,
    ),
}
