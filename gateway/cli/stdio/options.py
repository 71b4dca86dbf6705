"""The options of `gateway stdio --spec`, as a dictionary."""

from typing import cast

from gateway.cli.input.import_options import ImportArguments
from gateway.cli.input.selections import SelectionOptions
from gateway.domain.tenancy.policy import LOCAL_POLICY


class StdioOptions(SelectionOptions):
    """The options of documents."""

    prefixes: tuple[str, ...]
    base_urls: tuple[str, ...]
    member_expose: str | None
    member_output_schemas: bool | None
    credentials: tuple[str, ...]
    logins: tuple[str, ...]
    safe: str
    moderate: str
    dangerous: str


def on_streams(given: ImportArguments) -> StdioOptions:
    """Return the options of an import, completed for a server on standard streams with the default policy."""
    own = {
        "prefixes": () if given["member_prefix"] is None else (given["member_prefix"],),
        "base_urls": () if given["member_base_url"] is None else (given["member_base_url"],),
        **{level: decision for level, _, decision in (one.partition("=") for one in LOCAL_POLICY)},
    }
    return cast("StdioOptions", {**given, **own})
