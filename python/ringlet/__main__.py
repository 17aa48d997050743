"""``python -m ringlet``: the same as the command ``ringlet``."""

from __future__ import annotations

import sys

from ringlet.launcher.command_line import main

if __name__ == "__main__":
    sys.exit(main())
