"""Static files for browsers: compressed, and cached by digest."""

import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    compressed: bytes
    digest: str

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.from_body(path.read_bytes())

    @classmethod
    def from_body(cls, body: bytes) -> Self:
        return cls(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:24])


def sent(asset: Asset, media_type: str, cache: str, accept_encoding: str, if_none_match: str) -> Response:
    """Respond with the file, or with 304 if the browser has it already."""
    tag = f'"{asset.digest}"'
    headers = {"Cache-Control": cache, "ETag": tag, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if tag in if_none_match:
        return Response(status_code=304, headers=headers)
    if "gzip" in accept_encoding:
        return Response(asset.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type)
    return Response(asset.body, headers=headers, media_type=media_type)
