"""`headrace completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from headrace.cli.command import Command
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput

VARIABLE = "_HEADRACE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
async def completion(session: CliSession, *, shell: str) -> None:
    """Print the completion script of your shell.

    headrace completion bash > ~/.local/share/bash-completion/completions/headrace
    headrace completion zsh > ~/.zfunc/_headrace
    headrace completion fish > ~/.config/fish/completions/headrace.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise InvalidInput(f"click knows no completion for {shell}; use one of {SHELLS}")
    root = click.get_current_context().find_root().command
    # The script alone: click looks for a bash that is new enough, which may be another one.
    made = kind(root, {}, "headrace", VARIABLE)
    script = made.source_template % made.source_vars()
    session.show({"shell": shell, "script": script}, *script.splitlines())
