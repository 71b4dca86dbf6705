"""Built-in resources of attached editors: buffers, diagnostics and the selection."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gateway.domain.live_sources import DiscoveredPrimitive
from gateway.domain.primitives import Family

_JSON = "application/json"
_TITLES = {
    "buffers": ("Buffers", "The listed buffers: number, path, file type, lines, and which is modified or current."),
    "diagnostics": ("Diagnostics", "Errors, warnings and hints of language servers and linters, with their positions."),
    "selection": ("Selection", "The selected text, or the last selection, with its place, and the cursor."),
}
_NAME = re.compile(r"buffers|diagnostics|selection|buffer/[1-9][0-9]{0,8}")


class EditorResources:
    """The resources of one source, at URIs that begin with `nvim://{source}/`."""

    def __init__(self, source: str) -> None:
        self._begin = f"nvim://{quote(source, safe='')}/"

    def primitives(self) -> Sequence[DiscoveredPrimitive]:
        """Return the three resources and the template of buffers."""
        listed: list[tuple[Family, str, dict[str, object]]] = [
            (
                Family.RESOURCE,
                f"{self._begin}{name}",
                {"uri": f"{self._begin}{name}", "name": name, "title": title, "description": text, "mimeType": _JSON},
            )
            for name, (title, text) in _TITLES.items()
        ]
        template = f"{self._begin}buffer/{{number}}"
        text = "The text of a listed buffer, including unsaved changes."
        listed.append(
            (Family.TEMPLATE, template, {"uriTemplate": template, "name": "buffer", "description": text}),
        )
        return [DiscoveredPrimitive(family=family, name=name, definition=found) for family, name, found in listed]

    def name_of(self, uri: object) -> str | None:
        """Return the plugin's name of a resource, such as `buffer/3`; None for an unknown URI."""
        if not isinstance(uri, str) or not uri.startswith(self._begin):
            return None
        name = uri.removeprefix(self._begin)
        return name if _NAME.fullmatch(name) else None

    def uri_of(self, name: str) -> str:
        """Return the URI of a resource from the plugin's name."""
        return self._begin + name

    def contents(self, name: str, raw: bytes) -> Mapping[str, Any]:
        """Return the result of `resources/read`; a buffer that is not UTF-8 becomes a blob."""
        kind = "text/plain" if name.startswith("buffer/") else _JSON
        content: dict[str, object] = {"uri": self.uri_of(name), "mimeType": kind}
        try:
            content["text"] = raw.decode()
        except UnicodeDecodeError:
            content |= {"blob": b64encode(raw).decode(), "mimeType": "application/octet-stream"}
        return {"contents": [content]}
