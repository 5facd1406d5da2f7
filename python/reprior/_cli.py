"""The command ``reprior``: the program, through the extension module."""

from __future__ import annotations

import signal
import sys

from reprior import _lib


def main() -> int:
    """Runs the program with the arguments of this process; its exit code."""
    # the program has its own handler, and before it begins Ctrl-C ends it as any other
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _lib.main(["reprior", *sys.argv[1:]])
