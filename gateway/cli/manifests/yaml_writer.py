"""YAML of JSON values, which the reader of manifests reads back to the same values."""

from typing import Any

import yaml

from gateway.openapi.document.yaml_reader import resolve_plain

_WIDTH = 120


class _Dumper(yaml.CSafeDumper):
    """PyYAML's dumper with the texts of YAML 1.2: one that the reader would take for another value is quoted."""


def _represent_text(dumper: Any, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if resolve_plain(text) == text else '"'
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _represent_text)
_Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]  # equal values are written twice


def write_yaml(value: object) -> str:
    """Return the value as one YAML document, without a marker; members keep their order."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )
    return text
