"""Files that browsers keep: sent compressed, and only once."""

import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, plain and compressed."""

    body: bytes
    compressed: bytes
    digest: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """The file at `path`."""
        body = path.read_bytes()
        return cls(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:24])


def sent(asset: Asset, media_type: str, cache: str, accept_encoding: str, if_none_match: str) -> Response:
    """The response to a browser that may have it already."""
    tag = f'"{asset.digest}"'
    headers = {"Cache-Control": cache, "ETag": tag, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if tag in if_none_match:
        return Response(status_code=304, headers=headers)
    if "gzip" in accept_encoding:
        return Response(asset.compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type)
    return Response(asset.body, headers=headers, media_type=media_type)
