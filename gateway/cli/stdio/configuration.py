"""`gateway stdio --client-lines`: the configuration of known clients for the same command, without that option."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gateway.cli.contexts.chosen import tenant_key
from gateway.cli.input.documents import source_name
from gateway.cli.input.options import chosen_mcp_url
from gateway.cli.output.client_lines import LocalCommand, stdio_lines
from gateway.cli.output.printing import show
from gateway.cli.output.tables import render_pairs


def print_client_lines(specs: Sequence[str], url: str | None) -> None:
    """Print one line for each known client.

    Raises:
        Failure: the URL or the key of a bridge cannot be used.
    """
    arguments = ["stdio"]
    variables: dict[str, str] = {}
    if specs:
        name = source_name(specs[0])
        arguments += _repeat_arguments(specs)
    else:
        target = chosen_mcp_url(url)
        name = urlsplit(target).path.split("/")[-2] or "gateway"
        arguments += ["--url", target]
        variables["GATEWAY_KEY"] = tenant_key(target)
    program = shutil.which("gateway")
    command, *first = [program] if program is not None else [sys.executable, "-m", "gateway"]
    lines = stdio_lines(name, LocalCommand(command=command, arguments=[*first, *arguments], variables=variables))
    show(dict(lines), lambda: render_pairs(list(lines)), as_json=False)


def _repeat_arguments(specs: Sequence[str]) -> Sequence[str]:
    """Return the arguments of this command. Paths are absolute, because clients start it in another folder."""
    given = sys.argv[sys.argv.index("stdio") + 1 :]
    absolute = {spec: str(Path(spec).resolve()) for spec in specs if "://" not in spec}
    absolute |= {f"--spec={spec}": f"--spec={path}" for spec, path in absolute.items()}
    return [absolute.get(argument, argument) for argument in given if argument != "--client-lines"]
