"""The command ``mcpsync``: what it takes and gives is in ``docs/cli.md``.

* :mod:`mcpsync.cli.arguments`: the command line, and :mod:`mcpsync.cli.values`: the arguments of tools and prompts
* :mod:`mcpsync.cli.app`: from the command line to an exit code
* :mod:`mcpsync.cli.servers`: which servers are meant
* :mod:`mcpsync.cli.configs`: commands on config files
* :mod:`mcpsync.cli.listings`, :mod:`mcpsync.cli.actions`, :mod:`mcpsync.cli.demo`: the commands
* :mod:`mcpsync.cli.output`, :mod:`mcpsync.cli.text`, :mod:`mcpsync.cli.progress`: what is shown
* :mod:`mcpsync.cli.asking`: questions of a server, on the terminal
"""

from __future__ import annotations

import sys
from typing import Optional, Sequence

__all__ = ["main"]


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the command.

    :param argv: its arguments; by default those of this process
    :returns: the exit code, one of :data:`mcpsync.cli.exits.MEANINGS`
    """
    try:
        from mcpsync.cli.app import run

        return run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:  # before, or after, there was anything to clean up
        return 130
