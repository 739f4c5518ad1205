"""Tells whether a tool asks the service: whether it is the substitute that reads."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable


def asks_service(run: Callable[[str], object]) -> bool:
    """Whether what runs with this FASTPROC_SOCKET connects to it."""
    asked = threading.Event()

    def answer() -> None:
        with contextlib.suppress(OSError):
            # Whoever connects finds that nobody serves, and goes on without.
            listener.accept()[0].close()
            asked.set()

    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
    ):
        listener.bind(f"{folder}/socket")
        listener.listen(8)
        waiting = threading.Thread(target=answer)
        waiting.start()
        try:
            run(f"{folder}/socket")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            waiting.join()
    return asked.is_set()
