"""`POST /documents`: files of any format, streamed to disk as they arrive, then a job. Nothing is held in memory.

Either `multipart/form-data` with one part for each file, or one file as the body and its name in the query.
"""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request
from starlette.responses import Response

from pipelines.ingest.jobs import as_json
from pipelines.pools import Pool
from pipelines.problems import UnreadableFields
from tenants.core.errors import Invalid, Malformed
from tenants.work import idempotency, jobs
from tenants.work.uploads import Upload, UploadedFile

_MULTIPART = b"multipart/form-data"
_WORKING = Pool("uploads", 4, turns=2)
"""Threads that write files; two serve a tenant. A piece of a body can hold the beginnings of a thousand files."""


async def receive(request: Request) -> Response:
    """Accept files, and return 202 with the job that will ingest them once the files and the job are on disk."""
    body = json.dumps(await take(request), ensure_ascii=False)
    return Response(body, HTTPStatus.ACCEPTED, media_type="application/json")


async def take(request: Request, *, fields: frozenset[bytes] = frozenset()) -> dict[str, Any]:
    """Take files; return the job that will ingest them.

    :param fields: fields of a page's form, which are passed over, as is a file that was not chosen.
    """
    await _WORKING.run({}, jobs.check_capacity)
    inbox = await _WORKING.run({}, _Inbox)
    try:
        write, finish = await _WORKING.run({}, partial(_begin, request, inbox, fields))
        async for piece in request.stream():
            await _WORKING.run({}, partial(write, piece))
        await _WORKING.run({}, finish)
        return await _WORKING.run({}, partial(inbox.accept, request.headers.get("idempotency-key")))
    finally:
        await asyncio.shield(_WORKING.run({}, inbox.close))


class _Inbox:
    """Files of one request. They belong to a job once accepted; until then, `close` removes them."""

    def __init__(self) -> None:
        self._job_id = jobs.new_id()
        self._upload = Upload(self._job_id)
        self._digest = sha256()
        self._file: UploadedFile | None = None
        self._accepted = False

    def open(self, name: str) -> None:
        self._file = self._upload.file(name)
        self._digest.update(f"\n{len(name)} {name}\n".encode())

    def write(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
            self._digest.update(data)

    def end(self) -> None:
        if self._file is not None:
            self._digest.update(f"\n{self._file.size}".encode())
            self._file.close()
            self._file = None

    def accept(self, key: str | None) -> dict[str, Any]:
        """Store the files as a job and return it. For the key of an earlier request, return that request's job."""
        if not self._upload.names:
            raise UnreadableFields((("files", "field_missing"),))
        if key is None:
            return self._add()
        earlier = idempotency.begin(key, self._digest.hexdigest())
        if earlier is not None:
            known: dict[str, Any] = json.loads(earlier)
            return known
        try:
            job = self._add()
        except BaseException:
            idempotency.abandon(key)
            raise
        idempotency.finish(key, json.dumps(job, ensure_ascii=False))
        return job

    def close(self) -> None:
        """Remove all of it, unless it was accepted."""
        if self._file is not None:
            self._file.abandon()
        self._upload.close(keep=self._accepted)

    def _add(self) -> dict[str, Any]:
        self._upload.settle()
        job = jobs.add(self._job_id, "upload", self._upload.names, size=self._upload.size)
        self._accepted = True
        return as_json(job)


def _begin(
    request: Request, inbox: _Inbox, fields: frozenset[bytes]
) -> tuple[Callable[[bytes], None], Callable[[], None]]:
    """Return what takes a piece of the body into the inbox, and what ends it."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind == _MULTIPART:
        form = _Multipart(inbox, options.get(b"boundary", b""), fields)
        return form.write, form.finish
    name = request.query_params.get("name")
    if name is None:
        raise UnreadableFields((("name", "field_missing"),))
    inbox.open(name)
    return inbox.write, inbox.end


class _Multipart:
    """Each part with a file name is a file; other fields are refused, unless they are a page's."""

    def __init__(self, inbox: _Inbox, boundary: bytes, fields: frozenset[bytes]) -> None:
        self._inbox = inbox
        self._fields = fields
        self._header = b""
        self._value = b""
        self._disposition = b""
        self._complete = False
        with Malformed().instead_of(FormParserError):
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_part_end": inbox.end,
                    "on_end": self._on_end,
                },
            )

    def write(self, data: bytes) -> None:
        with Malformed().instead_of(FormParserError):
            self._parser.write(data)

    def finish(self) -> None:
        if not self._complete:
            raise Malformed

    def _on_part_begin(self) -> None:
        self._disposition = b""

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"filename")
        if self._fields and (name == b"" or (name is None and options.get(b"name") in self._fields)):
            return
        if name is None:
            raise UnreadableFields((("files", "unknown_field"),))
        with Invalid("file_name_invalid").instead_of(UnicodeDecodeError):
            self._inbox.open(name.decode())

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._inbox.write(data[start:end])

    def _on_end(self) -> None:
        self._complete = True
