"""Finds the program that this package runs, and starts it as a console command."""

import os
import re
import shutil
import sys
from typing import NoReturn

from ._error import Error

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def program(name: str = "rlhf-host") -> str:
    """Returns the path of ``rlhf-host`` or ``rlhf-plugin-check``.

    This is the program of the wheel. If the package lies in a checkout of the sources, it is the program that the
    environment variable ``RLHF_HOST`` names, or the first one on ``PATH``.
    """
    own = os.path.join(_PACKAGE, "_root", "bin", name)
    if os.path.isfile(own):
        return own
    named = os.environ.get("RLHF_HOST")
    if named:
        path = os.path.join(os.path.dirname(os.path.abspath(named)), name)
        if os.path.isfile(path):
            return path
        raise Error(f"RLHF_HOST is {named!r}, but there is no file {path}; set it to the path of rlhf-host")
    found = shutil.which(name)
    if found:
        return found
    raise Error(f"{name} was not found; install the wheel of rlhf-host, or set RLHF_HOST to the path of rlhf-host")


def version() -> str:
    """Returns the version of this package, which is the program's.

    It is read from ``base.h`` of the SDK, in the wheel or in the checkout, because the version is defined there.
    """
    for folder in ("_root/include", "../../sdk/include"):
        try:
            with open(os.path.join(_PACKAGE, folder, "rlhf", "base.h"), encoding="utf-8") as header:
                found = re.search(r'^#define RLHF_SDK_VERSION "([^"]+)"', header.read(), re.M)
        except OSError:
            continue
        if found:
            return found.group(1)
    return "unknown"


def _become(name: str) -> NoReturn:
    try:
        path = program(name)
        os.execv(path, [path, *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"{name}: {error}")


def rlhf_host() -> NoReturn:
    """The console command ``rlhf-host``."""
    _become("rlhf-host")


def rlhf_plugin_check() -> NoReturn:
    """The console command ``rlhf-plugin-check``."""
    _become("rlhf-plugin-check")
