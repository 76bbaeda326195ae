"""Another channel, such as a messenger's bot: its messages go to Opora, and what Opora says comes back by a webhook.

opora site add "Messenger" --origin "*" --identity-required --tenant acme
opora webhook add https://bridge.example/opora --event chat.message --tenant acme
uvicorn bridge:app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import time

import httpx
import jwt
from fastapi import FastAPI, Request, Response
from standardwebhooks import Webhook, WebhookVerificationError

opora = httpx.AsyncClient(base_url=os.environ["OPORA_URL"], timeout=30)
messenger = httpx.AsyncClient(base_url=os.environ["MESSENGER_URL"], timeout=30)
webhook = Webhook(os.environ["WEBHOOK_SECRET"])


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with opora, messenger:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/messenger")
async def receive_update(update: dict[str, dict[str, str]]) -> None:
    """Store what a person writes to the bot in their chat; the first message starts one."""
    message = update["message"]
    claims = {"sub": f"messenger:{message['chat_id']}", "aud": "opora", "exp": int(time()) + 300}
    identity = jwt.encode(claims, os.environ["IDENTITY_SECRET"], algorithm="HS256")
    session = await opora.post("/widget/sessions", json={"site": os.environ["SITE_KEY"], "identity": identity})
    headers = {"Authorization": f"Bearer {session.raise_for_status().json()['token']}"}
    chats = (await opora.get("/chats", headers=headers)).json()
    chat = chats[0] if chats else (await opora.post("/chats", json={}, headers=headers)).json()
    # The messenger's id of the message, so that one delivered twice is stored once.
    body = {"text": message["text"], "client_id": message["message_id"]}
    (await opora.post(f"/chats/{chat['chat_id']}/messages", json=body, headers=headers)).raise_for_status()


@app.post("/opora")
async def receive_event(request: Request) -> Response:
    """Pass on a message of the assistant or of a person; Opora has signed the event."""
    try:
        event = webhook.verify(await request.body(), dict(request.headers))
    except WebhookVerificationError:
        return Response(status_code=401)
    message, subject = event["data"]["message"], event["data"]["subject"]
    if message["author"] in ("bot", "operator") and "messenger:" in subject:
        body = {"chat_id": subject.partition("messenger:")[2], "text": message["text"]}
        (await messenger.post("/sendMessage", json=body)).raise_for_status()
    return Response(status_code=204)
