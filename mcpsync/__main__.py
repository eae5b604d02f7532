"""``python -m mcpsync``: the same as the command ``mcpsync``."""

from __future__ import annotations

import sys

from mcpsync.cli import main

if __name__ == "__main__":
    sys.exit(main())
