"""A worker whose reader does what hostile files make readers do; the file's name says what. For `test_sandbox.py`."""

import ctypes
import json
import os
import sys

from components.ingest import file_worker, formats
from components.ingest.formats.parsed import Parsed
from tenants.errors import TooLarge

_KEPT: list[bytearray] = []


def read(name: str, data: bytes) -> Parsed:
    """What a reader should do, for `good`; anything but that otherwise."""
    text = data.decode()
    match name:
        case "good":
            print("a library that talks")
            return Parsed("title", text, "plain", {"pid": os.getpid()}, ("hidden_text",), 3)
        case "environment":
            return Parsed("", json.dumps(dict(os.environ)))
        case "hang":
            while True:
                pass
        case "grow":
            return Parsed("", str(len([bytearray(2**20) for _ in range(4_000)])))
        case "keep":
            _KEPT.append(bytearray(300 * 2**20))
            return Parsed("", text, meta={"pid": os.getpid()})
        case "crash":
            ctypes.string_at(0)
        case "leave":
            os._exit(0)
        case "write":
            with open(text, "wb") as file:  # noqa: PTH123 - what a library would do
                file.write(b"escaped")
        case "descend":
            return read(name, data)
        case "typed":
            raise TooLarge("pages_too_many", limit=5)
        case "endless":
            return Parsed("", "я" * 5_000_001)
        case "half":
            return Parsed("", "a\ud800b")
        case _ if name.startswith("say:"):
            answer = name.removeprefix("say:").encode()
            sys.__stdout__.buffer.write(len(answer).to_bytes(8) + answer) if sys.__stdout__ else None
            sys.__stdout__.flush() if sys.__stdout__ else None
            os._exit(0)
        case "boast":
            os.write(1, (2**40).to_bytes(8))
    raise KeyError(name)


def main() -> None:
    """Serve like the real worker, with this reader."""
    formats.read = read
    file_worker.main()
