"""Workers taken over by hostile files. The file's name or the document's title selects their behaviour."""

import ctypes
import json
import os
import pickle
import sys
from pathlib import Path

from components.ingest import formats, worker
from components.ingest.formats.parsed import Parsed
from tenants.core.errors import TooLarge

_KEPT: list[bytearray] = []


def read(name: str, data: bytes) -> Parsed:
    """Read correctly for `good`; misbehave otherwise."""
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
    worker.main()


class _Touch:
    """Makes a file wherever it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (Path(self.path),)


def answer(request: str, data: bytes, memory: int) -> bytes:
    """Return a worker's answer with the fault that the first text names."""
    payload = json.loads(data)
    title = payload["documents"][0]["title"]
    name, _, parameter = title.partition(" ")
    if name == "pickle":
        return pickle.dumps(("", _Touch(parameter)))
    if name == "nest":
        return b'{"result": ' + b"[" * 100_000
    reply = json.loads(worker.answer(request, data, memory))
    result = reply["result"]
    match name:
        case "shorten":
            result.pop()
        case "add":
            result[0]["run"] = parameter
        case "fail":
            reply = {"error": {"kind": "Invalid", "code": parameter, "params": {}}}
        case "steal":
            result[0]["chunks"][0]["chunk_id"] = parameter
        case "rewrite":
            result[0]["chunks"][0]["text"] = parameter
        case "overreach":
            result[0]["chunks"][0]["sentences"] = [[0, 10**9]]
    return json.dumps(reply).encode()


def text_main() -> None:
    """Serve like the real worker of texts, with these answers."""
    worker.serve(answer)
