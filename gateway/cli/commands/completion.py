"""`gateway completion`: shell completion of commands and options."""

import click
from click.shell_completion import get_completion_class

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.output.printing import echo

_VARIABLE = "_GATEWAY_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def print_completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL, for example: eval "$(gateway completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise Failure(f"no completion for {shell}", ExitCode.USAGE)
    script = found(context.find_root().command, {}, "gateway", _VARIABLE)
    echo(script.source_template % script.source_vars())
