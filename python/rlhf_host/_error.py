"""The exception of this package."""

from typing import Optional


class Error(Exception):
    """A failure of the program, with the program's sentence as its text.

    ``status`` is the program's exit status: 2 for bad input, 1 for a failure while running, 3 after
    ``run.stop_on``. It is ``None`` if the program was not started.
    """

    def __init__(self, message: str, status: Optional[int] = None):
        super().__init__(message)
        self.status = status
