"""Rate limits by address, site and chat, as set by the installation; and consent over HTTP."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.chats.sites import Consent, SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.installations import installed
from tests.service.serving import Server, problem, serving

SHOP = "https://shop.example"
PER_ADDRESS, PER_SITE, PER_CHAT = 3, 5, 2
CONSENT = "Согласен на обработку персональных данных"


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with low limits, and the sites `site_one` and `site_two`."""
    folder = tmp_path_factory.mktemp("limited") / "data"
    with installed(folder):
        Registry().add("acme")
        with acting_as(Tenant("acme", "admin")):
            for key in ("site_one", "site_two"):
                sites.add(key, [SHOP], SiteConfig(consent=Consent(text=CONSENT)), key=key)
    limits = {
        "OPORA_DATA_DIR": str(folder),
        "OPORA_VISITOR_SESSIONS_PER_MINUTE": str(PER_ADDRESS),
        "OPORA_SITE_SESSIONS_PER_MINUTE": str(PER_SITE),
        "OPORA_CHAT_MESSAGES_PER_MINUTE": str(PER_CHAT),
    }
    with serving(limits) as server:
        yield server


@pytest.fixture(autouse=True)
def _in_force(installation: Settings) -> Settings:
    """Keep the settings of the folder's own service."""
    return installation


def session(server: Server, site: str, address: str) -> httpx.Response:
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), base_url=server.url, timeout=60) as client:
        return client.post("/widget/sessions", json={"site": site}, headers={"Origin": SHOP})


def test_sessions_are_bounded_by_address_and_by_site(limited: Server) -> None:
    assert [session(limited, "site_one", "127.0.0.2").status_code for _ in range(PER_ADDRESS)] == [200] * PER_ADDRESS
    refused = session(limited, "site_one", "127.0.0.2")
    problem(refused, 429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    for _ in range(PER_SITE - PER_ADDRESS):
        assert session(limited, "site_one", "127.0.0.3").status_code == 200
    problem(session(limited, "site_one", "127.0.0.4"), 429, "rate_limited")
    # Another site of the same tenant, from an address that has asked for no session there, is not held up.
    assert session(limited, "site_two", "127.0.0.5").status_code == 200


def test_help_pages_and_votes_are_bounded_by_address(limited: Server) -> None:
    def from_address(address: str) -> httpx.Client:
        transport = httpx.HTTPTransport(local_address=address)
        return httpx.Client(transport=transport, base_url=limited.url, timeout=60)

    with from_address("127.0.0.8") as client:
        assert [client.get("/help/site_two").status_code for _ in range(PER_ADDRESS)] == [200] * PER_ADDRESS
        refused = client.get("/help/site_two")
        assert (refused.status_code, refused.headers["content-type"][:9]) == (429, "text/html")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
    with from_address("127.0.0.9") as client:
        same = {"Sec-Fetch-Site": "same-origin"}
        votes = [client.post("/help/site_one/a.md", data={"helpful": "yes"}, headers=same) for _ in range(2)]
        assert [vote.status_code for vote in votes] == [404, 429]


def test_messages_and_files_are_limited_by_chat_and_need_consent(limited: Server) -> None:
    headers = {"Authorization": f"Bearer {session(limited, 'site_two', '127.0.0.6').json()['token']}"}
    with httpx.Client(base_url=limited.url, timeout=60, headers=headers) as client:
        first, second, third = (f"/chats/{client.post('/chats', json={}).json()['chat_id']}" for _ in range(3))

        def say(chat: str) -> httpx.Response:
            return client.post(f"{chat}/messages", json={"text": "Привет", "client_id": uuid4().hex})

        problem(client.post(f"{first}/files", files={"file": ("a.txt", b"text")}), 403, "consent_missing")
        assert client.post(f"{first}/consent", json={"text": CONSENT}).status_code == 204
        assert [say(first).status_code for _ in range(PER_CHAT)] == [202] * PER_CHAT
        problem(say(first), 429, "rate_limited")
        problem(client.post(f"{first}/files", files={"file": ("a.txt", b"text")}), 429, "rate_limited")
        assert client.post(f"{second}/files", files={"file": ("a.txt", b"text")}).status_code == 201
        assert say(second).status_code == 202
        problem(say(second), 429, "rate_limited")

        assert client.post(f"{third}/consent", json={"text": CONSENT}).status_code == 204
        assert client.delete(f"{third}/consent").status_code == 204
        problem(client.post(f"{third}/files", files={"file": ("a.txt", b"text")}), 403, "consent_withdrawn")
        problem(say(third), 403, "consent_withdrawn")
        assert client.get(third).json()["messages"] == []
        assert client.post(f"{third}/consent", json={"text": CONSENT}).status_code == 204
        assert say(third).status_code == 202
