"""Chat files over HTTP: uploaded by customers, downloaded by customers and operators.

Threat: a file that executes in the reader's browser. Every download is an attachment with the type that the service has
detected itself, and browsers must not sniff another one.
"""

from asyncio import to_thread
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar
from urllib.parse import quote

from fastapi import Depends, Request
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.responses import Response

from components.ingest.attachments import MEDIA_TYPES, AttachmentScanner, download_name
from pipelines.ask.chats.customer_chats import Conversations, file_limit
from pipelines.fair_requests import give_up_turn
from pipelines.pools import Pool
from pipelines.problems import UnreadableFields
from pipelines.request_bodies import form_with_file
from pipelines.routes import OpenRouter, opens
from tenants.accounts import policy
from tenants.accounts.policy import MAX_FILE_SIZE
from tenants.chats import consents, files, sites, store
from tenants.chats.files import ChatFile
from tenants.chats.records import Chat
from tenants.core import context
from tenants.core.errors import TooLarge

T = TypeVar("T")

_FORM_BYTES = 10_000
"""Maximum size of the other parts of the form, besides the file."""
_SCANS, _SCANS_OF_TENANT, _SCAN_PATIENCE = 2, 1, 30.0
"""Concurrent scans, in all and per tenant, and the seconds that a file waits for the turn of its sender."""
_WAITING_OF_SENDER, _WAITING_OF_VISITOR = 8, 2
"""Unscanned files of a signed-in visitor, or of an address, and of a visitor. Their bytes are bounded at the gate."""
_AT_STORE, _OF_TENANT_AT_STORE, _WAITING_FOR_STORE = 8, 2, 16
"""Files that are written and read at once, in all and per tenant, and those that a tenant may have waiting.

Threat: a store that does not answer. It would hold the threads that all requests need.
"""

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}
_DOWNLOAD: dict[int | str, dict[str, object]] = {
    200: {"description": "The file.", "content": {media: {} for media in sorted(MEDIA_TYPES.values())}}
}


class FilePart(BaseModel, from_attributes=True):
    """File in a chat. Send `file_id` with a message; until then operators do not see the file."""

    file_id: str
    name: str
    media_type: str
    size: int


def router(conversations: Conversations) -> OpenRouter:
    endpoints = OpenRouter("visit", tags=["chats"])
    scanner = AttachmentScanner(_SCANS)
    scans = Pool("scan", _SCANS, turns=_SCANS_OF_TENANT, patience=_SCAN_PATIENCE)
    at_store = Pool("chat-files", _AT_STORE, turns=_OF_TENANT_AT_STORE)

    async def with_store(work: Callable[[], T]) -> T:
        give_up_turn()
        return await at_store.run({context.current().tenant_id: _WAITING_FOR_STORE}, work)

    async def own_chat(chat_id: str) -> Chat:
        # A dependency, so that no form is read for a chat that is not the caller's.
        chat = await to_thread(store.own, chat_id)
        await to_thread(consents.check, chat.site)
        return chat

    @endpoints.post("/chats/{chat_id}/files", status_code=201, openapi_extra=_FORM)
    @opens(limit=MAX_FILE_SIZE + _FORM_BYTES, per_minute=20)
    async def send_file(chat: Annotated[Chat, Depends(own_chat)], request: Request) -> FilePart:
        """Store a file for a message: an image, PDF, DOCX, XLSX, CSV or text, recognized by content. It is scanned
        first.
        """
        await conversations.admit_message(chat.chat_id)
        limit = await to_thread(lambda: file_limit(sites.find(chat.site) if chat.site else None, policy.current()))
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit + _FORM_BYTES:
            raise TooLarge("chat_file_too_large", limit=limit)
        name, content = await _uploaded(request)
        if len(content) > limit:
            raise TooLarge("chat_file_too_large", limit=limit)
        caller = context.current()
        bounds = {f"{caller.tenant_id} {caller.subject}": _WAITING_OF_VISITOR}
        if caller.sender:
            bounds[f"{caller.tenant_id} from {caller.sender}"] = _WAITING_OF_SENDER
        form = await scans.run(bounds, partial(scanner.format_of, name, content))
        add = partial(files.add, chat.chat_id, download_name(name, form), MEDIA_TYPES[form], content)
        stored = await with_store(add)
        return FilePart.model_validate(stored)

    @endpoints.get("/chats/{chat_id}/files/{file_id}", response_class=Response, responses=_DOWNLOAD)
    async def download_file(chat_id: str, file_id: str) -> Response:
        """Return a file of the chat."""
        await to_thread(store.own, chat_id)
        return _download(*await with_store(partial(files.get, chat_id, file_id)))

    @endpoints.get("/desk/chats/{chat_id}/files/{file_id}", response_class=Response, responses=_DOWNLOAD)
    @opens(scope="operate", desk=True)
    async def download_desk_file(chat_id: str, file_id: str) -> Response:
        """Return a file sent by a customer."""
        await to_thread(store.get, chat_id)
        return _download(*await with_store(partial(files.get, chat_id, file_id)))

    return endpoints


async def _uploaded(request: Request) -> tuple[str, bytes]:
    """Return the name and content of the form's only file."""
    async with form_with_file(request, fields=0) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise UnreadableFields((("file", "field_missing"),))
        return file.filename or "", await file.read()


def _download(file: ChatFile, content: bytes) -> Response:
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
    }
    return Response(content, media_type=file.media_type, headers=headers)
