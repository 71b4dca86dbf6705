"""Entry point of `python -m gateway`: the command line."""

from gateway.cli.main import main

main()
