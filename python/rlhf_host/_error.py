"""The exceptions of this package."""

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._run import Run


class Error(Exception):
    """A failure of the program, with the program's sentence as its text.

    ``status`` is the program's exit status: 2 for bad input, 1 for a failure while running. It is None if the program
    was not started. ``run`` is the run that failed, or None. If a reward function raised an exception, it is the
    ``__cause__``.
    """

    def __init__(self, message: str, status: Optional[int] = None, run: "Optional[Run]" = None):
        super().__init__(message)
        self.status = status
        self.run = run


class Interrupted(KeyboardInterrupt):
    """The user ended a command by Ctrl-C, so that it has no result. ``run`` is the run, or None."""

    def __init__(self, run: "Optional[Run]" = None):
        super().__init__("rlhf-host was interrupted")
        self.run = run
