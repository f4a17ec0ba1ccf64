"""Fine-tunes language models from feedback, by the program ``rlhf-host``. See docs/python.md."""

from ._commands import eval, generate, runs
from ._error import Error, Interrupted
from ._program import version as _version
from ._run import Report, Run
from ._train import resume, train
from .from_trl import FromTRL, from_trl

for _class in (Error, FromTRL, Interrupted, Report, Run):
    _class.__module__ = __name__  # their name in tracebacks
__version__ = _version()
__all__ = ["Error", "FromTRL", "Interrupted", "Report", "Run", "eval", "from_trl", "generate", "resume", "runs", "train", "__version__"]
