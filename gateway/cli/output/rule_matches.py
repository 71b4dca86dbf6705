"""Text of a report on rules of the policy or of access: the primitives that each matches, and warnings."""

from gateway.cli.input.json_fields import JsonObject, as_text, text_at, to_list, to_objects
from gateway.cli.output.printing import Shown
from gateway.cli.output.reports import join_parts
from gateway.cli.output.tables import render_table
from gateway.definitions.excerpts import shorten


def list_warnings(found: JsonObject) -> list[str]:
    """Return the warnings of all rules, each with the number of its rule, and those of the rules as a whole."""
    return [
        *map(as_text, to_list(found.get("warnings"))),
        *(
            f"rule {text_at(rule, 'rule')}: {as_text(warning)}"
            for rule in to_objects(found.get("rules"))
            for warning in to_list(rule.get("warnings"))
        ),
    ]


def describe_matches(found: JsonObject) -> Shown:
    """Render the report."""
    rows = [
        (text_at(rule, "rule"), text_at(rule, "count"), shorten(text_at(rule, "names")))
        for rule in to_objects(found.get("rules"))
    ]
    warnings = "\n".join(f"warning: {warning}" for warning in list_warnings(found))
    return join_parts(render_table(("rule", "matches", "primitives"), rows) if rows else "there are no rules", warnings)
