"""Limits of bodies in JSON, and of the parts of credentials."""

MAX_JSON_DEPTH = 64
"""Levels of a JSON value. Parsers and checks are recursive, and other parsers have limits from about 100 to 1,000."""

MIN_PARAMETER_LENGTH = 8
"""Shorter values of parameters, such as `version=2`, are no secrets, and would match much unrelated text."""
