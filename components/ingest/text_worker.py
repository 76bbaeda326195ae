"""The process in which text is cut and analysed. `components.ingest.text_processes` starts it.

Requests and answers are JSON, whose forms stand there: what has read a stranger's text may not hand over objects.
"""

import gc
import json
from base64 import b64encode
from dataclasses import asdict
from typing import Any

# What is asked for is here before memory and files are limited.
from components.ingest.analysis import Text, analysed
from components.ingest.cut import cut_all
from components.ingest.document import SourceDocument
from components.ingest.pack import Sizes
from components.ingest.worker import serve

_BETWEEN_COLLECTIONS = 100_000
"""A text becomes many small objects that go with it; looking among them for rings takes a tenth of the time."""


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    serve(_answer)


def _answer(work: str, request: bytes, _memory: int) -> bytes:
    try:
        arguments = json.loads(request)
        result = _cut(**arguments) if work == "cut" else _analysed(**arguments)
        return json.dumps({"result": result}, ensure_ascii=False).encode()
    except MemoryError:
        code = "file_too_demanding"
    except RecursionError:
        code = "file_too_deep"
    return json.dumps({"error": code}).encode()


def _cut(documents: list[dict[str, Any]], sizes: dict[str, int]) -> list[dict[str, object]]:
    return [asdict(cut) for cut in cut_all([SourceDocument(**fields) for fields in documents], Sizes(**sizes))]


def _analysed(texts: list[list[str]], encoder: str) -> list[dict[str, object]]:
    return [
        {
            "packed": [b64encode(part).decode() for part in analysis.packed],
            "stems": list(analysis.stems),
            "words": list(analysis.words),
        }
        for analysis in analysed([Text(*parts) for parts in texts], encoder)
    ]
