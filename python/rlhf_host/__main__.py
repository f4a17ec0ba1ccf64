"""``python -m rlhf_host`` is the command ``rlhf-host``."""

from ._program import rlhf_host

rlhf_host()
