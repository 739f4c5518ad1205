"""Whether a tool connects to the service, and how many snapshots the service has served: shows that the substitute
reads."""

import contextlib
import json
import socket
import struct
import tempfile
import threading
from collections.abc import Callable


def asks_service(run: Callable[[str], object]) -> bool:
    """Whether a program that runs with this FASTPROC_SOCKET connects to it."""
    asked = threading.Event()

    def answer() -> None:
        with contextlib.suppress(OSError):
            # A client finds that the service does not answer, and continues without it. A tool that waits long for the
            # service connects more than once.
            while True:
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


# docs/dev/protocol.md: words of a request and of an answer, the version, the operation.
REQUEST, ANSWER, VERSION, STATUS = 13, 40, 1, 4
WORD = struct.calcsize("=Q")


def snapshots_served(path: str) -> int:
    """The number of snapshots that the service at this path has handed out."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(120)
        connection.connect(path)
        connection.send(
            struct.pack(f"={REQUEST}Q", VERSION, STATUS, *[0] * (REQUEST - 2))
        )
        answer = connection.recv(1 << 20)
    return int(json.loads(answer[ANSWER * WORD :])["fills_total"])
