"""Command line options of an import. `import_request` sends the import, so `--help` needs no HTTP client."""

import click

from gateway.cli.input.selections import SelectionOptions
from gateway.domain.sources import Exposure


class ImportArguments(SelectionOptions):
    """The options of an import, without the document."""

    base_url: str | None
    prefix: str | None
    expose: str | None
    output_schemas: bool | None
    credentials: tuple[str, ...]
    logins: tuple[str, ...]


base_url_option = click.option("--base-url", help="URL of the API, instead of the document's.")
prefix_option = click.option("--prefix", help="Put in front of every tool's name.")
expose_option = click.option(
    "--expose",
    type=click.Choice([form.value for form in Exposure]),
    help="A tool for each operation, seven query tools for all of them, or both; default: tools.",
)
output_schemas_option = click.option(
    "--output-schemas/--no-output-schemas",
    default=None,
    help="List what the tools answer, and hold answers to it; default: no.",
)
entry_option = click.option("--entry", metavar="PATH", help="The outermost file of an archive, if it is not clear.")
credential_option = click.option(
    "--credential",
    "credentials",
    multiple=True,
    metavar="SCHEME=VALUE",
    help="The key or token of a security scheme; VALUE may be @FILE, env:NAME or credential:NAME.",
)
login_option = click.option(
    "--login",
    "logins",
    multiple=True,
    metavar="SCHEME=USER:PASSWORD",
    help="The same for a scheme of HTTP Basic, which has two parts.",
)
