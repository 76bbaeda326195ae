"""Signing of webhooks by Standard Webhooks (https://www.standardwebhooks.com): secrets, and headers of a delivery."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_bytes

OVERLAP = timedelta(hours=24)
"""Time for which the previous secret keeps signing after a rotation."""


def new_secret(now: datetime) -> dict[str, str]:
    """Return a secret in the form in which it is stored."""
    return {"secret": f"whsec_{b64encode(token_bytes(32)).decode()}", "created_at": now.isoformat()}


def signing_secrets(stored: Sequence[Mapping[str, str]], now: datetime) -> tuple[str, ...]:
    """Return the secrets that sign at this moment, newest first.

    An older secret counts from the moment that the newer one took its place.
    """
    newest, *older = stored
    overlapping = now - datetime.fromisoformat(newest["created_at"]) < OVERLAP
    return (newest["secret"], *(previous["secret"] for previous in older if overlapping))


def signed_headers(delivery_id: str, body: str, secrets: Sequence[str]) -> Mapping[str, str]:
    """Return the headers of a delivery: its id, the same at each attempt, the time, and a signature by each secret."""
    moment = str(int(datetime.now(UTC).timestamp()))
    content = f"{delivery_id}.{moment}.{body}".encode()
    return {
        "content-type": "application/json",
        "webhook-id": delivery_id,
        "webhook-timestamp": moment,
        "webhook-signature": " ".join(f"v1,{_signature(secret, content)}" for secret in secrets),
    }


def _signature(secret: str, content: bytes) -> str:
    key = b64decode(secret.removeprefix("whsec_"))
    return b64encode(hmac.new(key, content, sha256).digest()).decode()
