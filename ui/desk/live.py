"""Live updates of a tenant's chats for the desk's pages: changed chats, typing and presence.

After a change, a page reloads itself and merges the differences, so each element is rendered in one place only.
One stream serves all tabs of a browser, so a tab reports the operator's presence in its chat by a separate request.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from time import monotonic
from typing import Annotated

from fastapi import Form, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from pipelines import shutdown
from pipelines.ask.chats.events import SILENCE_SECONDS
from pipelines.ask.chats.presence import Attendances, announce_soon
from pipelines.routes import OpenRouter, opens
