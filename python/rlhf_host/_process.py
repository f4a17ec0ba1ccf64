"""Runs the program as a child process: passes its lines on, calls reward functions for it, and handles Ctrl-C.

One thread only reads: the program's output, and the requests for reward functions. Everything else happens in the
thread of the caller, above all the calls of the functions.
"""

import os
import queue
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _driver
from ._functions import Offer
from ._program import program
from ._show import Silent

# Starts the program such that it gets SIGTERM if this process dies. It may get the signal several times, because the
# kernel sends it for each thread that dies, and a second signal ends the program at once.
_START = """
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
except Exception:
    pass
if os.getppid() == int(sys.argv[1]):
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"rlhf-host: error: {sys.argv[2]} cannot be started: {error.strerror}")
"""

_SECONDS_TO_END = 20  # for a program that got SIGTERM because of an exception in this process


class _Abandoned(BaseException):
    """Raised within a reward function whose answer the program no longer waits for."""


def trimmed(error: Optional[BaseException]) -> Optional[BaseException]:
    """Removes the frames of this package from the beginning of an exception's traceback."""
    if error is None:
        return None
    at = error.__traceback__
    while at and at.tb_frame.f_code.co_filename == _driver.__file__:
        at = at.tb_next
    return error.with_traceback(at or error.__traceback__)


class _Requests:
    """Cuts the bytes of a connection into requests."""

    def __init__(self) -> None:
        self.data = bytearray()

    def take(self, data: bytes) -> List[bytes]:
        self.data += data
        found: List[bytes] = []
        while True:
            end = self.data.find(b"\n")
            if end < 0:
                return found
            size = int(self.data[:end])
            if len(self.data) < end + 1 + size:
                return found
            found.append(bytes(self.data[end + 1:end + 1 + size]))
            del self.data[:end + 1 + size]


class Process:
    """The program, running with these arguments."""

    def __init__(self, arguments: Sequence[str], offer: Optional[Offer] = None, one_stream: bool = False):
        """``one_stream``: the lines of standard output are lines like those of standard error, not a result."""
        self.offer = offer
        self.one_stream = one_stream
        self.output: List[bytes] = []  # standard output, unless one_stream
        self.function_error: Optional[BaseException] = None  # the last exception of a reward function
        self.interrupts = 0
        self._calling: Optional[socket.socket] = None  # the connection for which a function is running
        self._abandon = False
        self._answers_signals = False  # SIGINT arrives at _interrupted
        self._events: "queue.SimpleQueue[Tuple[str, Any, Any]]" = queue.SimpleQueue()
        self._command = [program(), *arguments]
        if sys.executable:
            self._command = [sys.executable, "-I", "-S", "-c", _START, str(os.getpid()), *self._command]
        self._child: "subprocess.Popen[bytes]"
        self._reader = threading.Thread(target=self._read, name="rlhf-host", daemon=True)

    def _start(self) -> None:
        environment = dict(os.environ)
        if self.offer:
            environment[_driver.SOCKET] = self.offer.address
        self._child = subprocess.Popen(
            self._command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self.one_stream else subprocess.PIPE,
            start_new_session=True)  # so that Ctrl-C arrives at this process alone
        self._reader.start()

    # ---- the reading thread ----

    def _read(self) -> None:
        try:
            self._read_all()
        except BaseException:
            self._child.kill()
            raise
        finally:
            self._events.put(("end", self._child.wait(), None))

    def _read_all(self) -> None:
        connections: Dict[socket.socket, _Requests] = {}
        partial: Dict[Any, bytes] = {}
        with selectors.DefaultSelector() as selector:
            for stream in (self._child.stdout, self._child.stderr):
                if stream:
                    partial[stream] = b""
                    selector.register(stream, selectors.EVENT_READ)
            if self.offer:
                selector.register(self.offer.listener, selectors.EVENT_READ)
            ended = False
            while partial:
                ready = [key.fileobj for key, _ in selector.select(0.5)]
                for one in ready:
                    if one in partial:
                        self._read_stream(one, partial, selector)
                    elif one in connections:
                        self._read_connection(one, connections, selector)
                    elif self.offer:
                        there, _ = self.offer.listener.accept()
                        connections[there] = _Requests()
                        selector.register(there, selectors.EVENT_READ)
                        self._events.put(("connected", there, None))
                if ended and not ready:
                    break  # another process holds the pipe
                ended = self._child.poll() is not None
        for there in connections:
            self._events.put(("gone", there, None))

    def _read_stream(self, stream: Any, partial: Dict[Any, bytes], selector: selectors.BaseSelector) -> None:
        data = os.read(stream.fileno(), 1 << 16)
        if stream is self._child.stdout and not self.one_stream:
            self.output.append(data)
        else:
            *lines, rest = (partial[stream] + data).split(b"\n")
            if not data and rest:
                lines.append(rest)
            partial[stream] = rest
            for line in lines:
                self._events.put(("line", line.decode("utf-8", "replace"), None))
        if not data:
            selector.unregister(stream)
            del partial[stream]

    def _read_connection(self, there: socket.socket, connections: Dict[socket.socket, _Requests],
                         selector: selectors.BaseSelector) -> None:
        try:
            data = there.recv(1 << 16)
            for request in connections[there].take(data):
                self._events.put(("request", there, request))
        except (OSError, ValueError):
            data = b""
        if data:
            return
        selector.unregister(there)
        del connections[there]
        self._events.put(("gone", there, None))
        if self._calling is there and self._answers_signals:
            self._abandon = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # ---- the caller's thread ----

    def run(self, show: Silent) -> int:
        """Starts the program, waits for its end, shows its lines, and returns its exit status (-n for signal n)."""
        was = signal.getsignal(signal.SIGINT)
        self._start()
        if threading.current_thread() is threading.main_thread() and was not in (signal.SIG_IGN, None):
            signal.signal(signal.SIGINT, self._interrupted)
            self._answers_signals = True
        try:
            while True:
                event, what, data = self._next(show)
                if event == "end":
                    return int(what)
                if event == "line":
                    show.line(what)
                elif event == "gone":
                    what.close()
                else:
                    self._answer(what, data)
        finally:
            if self._answers_signals:
                self._answers_signals = False
                signal.signal(signal.SIGINT, was)
            self._finish()

    def _next(self, show: Silent) -> Tuple[str, Any, Any]:
        while show.waits:
            try:
                return self._events.get(timeout=show.SECONDS)
            except queue.Empty:
                show.draw()
        return self._events.get()

    def _answer(self, there: socket.socket, request: Optional[bytes]) -> None:
        """Answers a connection (request is None) or a request."""
        assert self.offer
        self.show_function_error()  # the run went on after it
        try:
            try:
                self._calling = there
                answer = self._ready() if request is None else self.offer.answers.answer(request)
            finally:
                self._calling = None
            self.function_error = trimmed(self.offer.answers.error)
            there.sendall(answer)
        except (_Abandoned, KeyboardInterrupt, OSError):
            pass  # the program no longer waits for it

    def show_function_error(self) -> None:
        """Prints the traceback of the last exception of a reward function, if the last call failed."""
        error, self.function_error = self.function_error, None
        if error:
            traceback.print_exception(type(error), error, error.__traceback__)

    def _ready(self) -> bytes:
        assert self.offer
        try:
            return self.offer.answers.ready()
        except _driver.Refused as error:
            return _driver.packed("failed", [str(error)])

    def _interrupted(self, *_: Any) -> None:
        """The first Ctrl-C asks the program to end with a checkpoint, the second ends it, the third kills it."""
        if self._abandon:
            self._abandon = False
            if self._calling:
                raise _Abandoned
            return
        self.interrupts += 1
        self._child.send_signal(signal.SIGKILL if self.interrupts > 2 else signal.SIGINT)
        if self.interrupts > 1 and self._calling:
            raise KeyboardInterrupt

    def _finish(self) -> None:
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._reader.join(2)
        for stream in (self._child.stdout, self._child.stderr):
            if stream:
                stream.close()
