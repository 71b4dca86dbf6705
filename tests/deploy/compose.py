"""docker-compose.yml as Compose reads it: anchors merged, variables put in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Z_]+)(?::-(?P<default>(?:[^{}]|\{[^{}]*\})*))?\}")


def read_compose(**variables: str) -> dict[str, Any]:
    """The file with these variables."""
    reported: object = yaml.safe_load(FILE.read_text())
    return cast(dict[str, Any], _filled(reported, variables))


def _filled(value: object, variables: Mapping[str, str]) -> object:
    if isinstance(value, dict):
        return {name: _filled(part, variables) for name, part in cast(dict[str, object], value).items()}
    if isinstance(value, list):
        return [_filled(part, variables) for part in cast(list[object], value)]
    return _fill(value, variables) if isinstance(value, str) else value


def _fill(text: str, variables: Mapping[str, str]) -> str:
    def found(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        return variables.get(match["name"]) or _fill(match["default"] or "", variables)

    return _VARIABLE.sub(found, text)
