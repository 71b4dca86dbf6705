"""`gateway completion`: shell completion of commands, options and names of objects."""

import os
from typing import Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.output.printing import echo

COMPLETE_VARIABLE: Final = "_GATEWAY_COMPLETE"
"""The variable by which a completion script asks for words."""
_LINE: Final = "COMP_LINE"
_PLACES: Final = {
    "bash": 'add to ~/.bashrc: eval "$(gateway completion bash)"',
    "zsh": 'add to ~/.zshrc, after compinit: eval "$(gateway completion zsh)"',
    "fish": "run once: gateway completion fish > ~/.config/fish/completions/gateway.fish",
}


class ColonBashComplete(BashComplete):
    """Completion of Bash for words with colons, such as URIs: Bash splits a line there, and replaces the last part."""

    source_template = BashComplete.source_template.replace(
        "env COMP_WORDS=", f'env {_LINE}="${{COMP_LINE:0:$COMP_POINT}}" COMP_WORDS='
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the incomplete one, and the incomplete one."""
        line = os.environ.get(_LINE)
        if line is None:
            return super().get_completion_args()
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Write an offered word without the parts that Bash keeps."""
        _, incomplete = self.get_completion_args()
        kept = incomplete.rfind(":") + 1
        word = str(item.value)
        return f"{item.type},{word[kept:] if word.startswith(incomplete[:kept]) else word}"


def register_shells() -> None:
    """Let the completion of Bash handle colons."""
    add_completion_class(ColonBashComplete, "bash")


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_PLACES)))
@click.pass_context
def print_completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL; its first lines name its place.

    Commands and options are completed, and names of objects by the gateway of the options and variables.

    \b
    Example:
      eval "$(gateway completion bash)"
    """
    register_shells()
    found = get_completion_class(shell)
    if found is None:
        raise Failure(f"no completion for {shell}", ExitCode.USAGE)
    script = found(context.find_root().command, {}, "gateway", COMPLETE_VARIABLE)
    head, _, rest = (script.source_template % script.source_vars()).lstrip("\n").partition("\n")
    echo("\n".join((head, f"# {_PLACES[shell]}", rest)) if shell == "zsh" else f"# {_PLACES[shell]}\n{head}\n{rest}")
