"""Shapes of URI templates; templates of one shape match the same URIs."""

import re

_EXPRESSION = re.compile(r"\{([+#./]?)([^{}+#./;?&][^{}]*)\}")
_VARIABLE = re.compile(r"[^,:*]+")


def shape_of(uri_template: str) -> str:
    """Mask the variable names of a template, except after `;`, `?` and `&`, where URIs contain the names.

    Two templates of the same shape match the same URIs.
    """
    return _EXPRESSION.sub(lambda found: f"{{{found[1]}{_VARIABLE.sub('_', found[2])}}}", uri_template)
