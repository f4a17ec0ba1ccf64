"""Fine-tunes language models from feedback, by the program ``rlhf-host``. See docs/python.md."""

from ._error import Error
from ._program import version as _version

__version__ = _version()
__all__ = ["Error", "__version__"]
