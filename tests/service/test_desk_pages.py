"""The desk in a real browser against the real service: two people at work, and effects of customers on their pages."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from sqlalchemy import update

from pipelines import desk_gate
from settings import Settings
from tenants.chats import sites, store
from tenants.chats.records import Chat
from tenants.chats.tables import ChatMessageRow
from tenants.core.context import Tenant, acting_as
from tenants.desk import operator_sessions, replies
from tenants.desk.operators import Operator
from tenants.storage import database
from tests import desk
from tests.browser.turns import EXCERPT
from tests.service.serving import Server
from tests.webhooks import wait_until

MOVED = """() => {
  window.moved = [];
  new PerformanceObserver((list) => {
    for (const { sources } of list.getEntries()) for (const { node } of sources) {
      const one = node instanceof Element ? node : node?.parentElement;
      if (one && !one.closest('.rows, .messages')) window.moved.push(one.outerHTML.slice(0, 80));
    }
  }).observe({ type: 'layout-shift' });
}"""
"""Records layout shifts, except those of rows in changing lists."""


@pytest.fixture
def staff(installation: Settings) -> Mapping[str, Operator]:
    return desk.staff("acme", {"Анна": "admin", "Борис": "operator"})


@pytest.fixture
def chat() -> Chat:
    return desk.waiting("acme", desk.asked("acme", f"v:{datetime.now(UTC):%H%M%S%f}", "Где мой заказ?"))


@contextmanager
def signed_in(
    browser: Browser,
    server: Server,
    operator: Operator,
    *,
    scripts: bool = True,
) -> Iterator[BrowserContext]:
    """Open a browser of an operator."""
    with browser.new_context(
        locale="ru-RU",
        timezone_id="Europe/Moscow",
        java_script_enabled=scripts,
        viewport={"width": 1440, "height": 900},
    ) as context:
        context.set_default_timeout(20_000)
        secret, address = desk.secret_of(operator), server.url.replace("http", "https")
        context.add_cookies(
            [{"name": desk_gate.COOKIE, "value": secret, "url": address, "secure": True, "httpOnly": True}]
        )
        yield context


def opened(context: BrowserContext, server: Server, path: str) -> Page:
    """Open a page of the desk and wait for its connection."""
    page = context.new_page()
    page.goto(f"{server.url}{path}")
    expect(page.locator("#link")).to_have_text("на связи")
    return page


@pytest.fixture
def customer(acme: httpx.Client, token: Callable[..., str]) -> Callable[[Chat, str], None]:
    """Write as the customer of a chat."""

    def write(chat: Chat, text: str) -> None:
        headers = {"Authorization": f"Bearer {token('acme', 'visit', subject=chat.subject)}"}
        assert acme.post(
            f"/chats/{chat.chat_id}/messages", json={"text": text, "client_id": uuid4().hex}, headers=headers
        ).is_success

    return write


def test_a_customer_calls_a_person_who_replies_and_hands_back(
    browser: Browser, acme: httpx.Client, server: Server, staff: Mapping[str, Operator]
) -> None:
    with acting_as(Tenant("acme", "admin")):
        sites.add("Магазин", [], key="desk-walk")
    with browser.new_context(locale="ru-RU") as outside, browser.new_context(locale="ru-RU") as inside:
        shop, page = outside.new_page(), inside.new_page()
        page.goto(f"{server.url}/desk")
        expect(page).to_have_url(f"{server.url}/desk/sign-in?next=%2Fdesk")
        page.get_by_label("Организация").fill("acme")
        page.get_by_label("Имя для входа").fill(staff["Анна"].login)
        page.keyboard.press("Tab")
        page.keyboard.type(desk.PASSWORD)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Ждут")
        expect(page.locator("#link")).to_have_text("на связи")
        shop.goto(f"{server.url}/chat/desk-walk")
        shop.locator("textarea").fill("Что означает код E20 и кто починит?")
        shop.keyboard.press("Enter")
        expect(shop.locator(".message.bot .answer").last).to_be_visible()
        shop.get_by_role("button", name="Позвать сотрудника").first.click()
        expect(shop.locator(".status")).to_contain_text("сотрудник")
        # The row appears without reloading; the rest uses the keyboard only.
        row = page.locator(".row a", has_text="Что означает код E20")
        row = row.or_(page.locator(".row a").filter(has_text="Помощник:")).last
        expect(row).to_be_visible()
        row.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".message.customer").first).to_contain_text("Что означает код E20")
        page.keyboard.press("t")
        expect(page.locator(".about .tag")).to_have_text("Анна")
        expect(shop.locator(".status")).to_have_text("Анна на связи")
        page.keyboard.press("r")
        page.keyboard.type("Добрый день! Приедет мастер.")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".message.operator .bubble")).to_have_text("Добрый день! Приедет мастер.")
        expect(page.locator("#text")).to_have_value("")
        expect(shop.locator(".message.operator")).to_contain_text("Приедет мастер")
        page.keyboard.press("Escape")
        page.keyboard.press("b")
        expect(page.locator(".about .tag")).to_have_text("Помощник")
        expect(shop.locator(".status")).not_to_contain_text("Анна")


def test_a_conflicting_reply_keeps_its_text_and_shows_the_newer_one(
    browser: Browser, server: Server, staff: Mapping[str, Operator], chat: Chat
) -> None:
    path = f"/desk/chat/{chat.chat_id}"
    with signed_in(browser, server, staff["Анна"]) as first, signed_in(browser, server, staff["Борис"]) as second:
        # The second page receives no updates.
        second.route("**/desk/live", lambda route: route.abort())
        late = second.new_page()
        late.goto(f"{server.url}{path}")
        late.locator("#text").fill("Ваш заказ на складе.")
        early = opened(first, server, path)
        early.locator("#text").fill("Заказ уже едет.")
        early.get_by_role("button", name="Ответить").click()
        expect(early.locator(".message.operator .bubble")).to_have_text("Заказ уже едет.")
        late.get_by_role("button", name="Ответить").click()
        expect(late.locator("#fault")).to_contain_text("Анна")
        expect(late.locator(".message.operator .bubble")).to_have_text("Заказ уже едет.")
        expect(late.locator("#text")).to_have_value("Ваш заказ на складе.")
        late.get_by_role("button", name="Ответить").click()
        expect(late.locator(".message.operator .bubble")).to_have_text(["Заказ уже едет.", "Ваш заказ на складе."])
        expect(late.locator("#text")).to_have_value("")
        expect(late.locator("#fault")).to_be_hidden()
        expect(early.locator(".message.operator .bubble")).to_have_count(2)


def test_a_stream_that_is_refused_is_opened_again(
    browser: Browser, server: Server, staff: Mapping[str, Operator]
) -> None:
    """An `EventSource` does so only after a lost connection."""
    refusals = [429, 503]

    def refuse_first(route: Route) -> None:
        if refusals:
            route.fulfill(status=refusals.pop())
        else:
            route.continue_()

    with signed_in(browser, server, staff["Анна"]) as context:
        context.route("**/desk/live", refuse_first)
        page = context.new_page()
        page.clock.install()
        with page.expect_response("**/desk/live"):
            page.goto(f"{server.url}/desk")
        expect(page.locator("#link")).to_have_class(re.compile("offline"))
        with page.expect_response("**/desk/live"):
            page.clock.fast_forward(10_000)
        page.clock.fast_forward(10_000)
        expect(page.locator("#link")).to_have_text("на связи")
        assert not refusals


def test_an_unfinished_reply_keeps_text_caret_and_focus_during_events(
    browser: Browser,
    server: Server,
    staff: Mapping[str, Operator],
    chat: Chat,
    customer: Callable[[Chat, str], None],
) -> None:
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, f"/desk/chat/{chat.chat_id}")
        text = page.locator("#text")
        text.fill("Здравствуйте! Ваш заказ")
        text.evaluate("field => field.setSelectionRange(5, 9)")
        before = page.locator(".composer").bounding_box()
        page.evaluate(MOVED)
        for number in range(20):
            customer(chat, f"Вопрос номер {number}")
        expect(page.locator(".message.customer")).to_have_count(21)
        expect(page.locator(".message.customer").last).to_contain_text("Вопрос номер 19")
        expect(text).to_be_focused()
        expect(text).to_have_value("Здравствуйте! Ваш заказ")
        assert text.evaluate("field => [field.selectionStart, field.selectionEnd]") == [5, 9]
        assert page.locator(".composer").bounding_box() == before
        assert page.evaluate("window.moved") == []
        expect(page.locator(".message.customer").last).to_be_in_viewport()
        page.reload()
        expect(text).to_have_value("Здравствуйте! Ваш заказ")


def test_what_is_open_or_focused_stays_so_while_the_list_changes(
    browser: Browser, server: Server, staff: Mapping[str, Operator], customer: Callable[[Chat, str], None]
) -> None:
    asked = desk.asked("acme", "v:open", "Код E20?")
    chat = desk.waiting("acme", desk.answered("acme", asked, "Очистите фильтр [1]."))
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, f"/desk/chat/{chat.chat_id}")
        page.locator(".evidence summary").click()
        expect(page.locator(".passages mark")).to_have_text(EXCERPT)
        row = page.locator(f'.row[data-id="{chat.chat_id}"] a')
        row.focus()
        customer(chat, "Ещё вопрос")
        expect(row).to_contain_text("Ещё вопрос")
        expect(row).to_be_focused()
        expect(page.locator(".passages mark")).to_be_visible()


def test_operators_see_who_else_looks_and_that_the_customer_types(
    browser: Browser,
    server: Server,
    staff: Mapping[str, Operator],
    chat: Chat,
    acme: httpx.Client,
    token: Callable[..., str],
) -> None:
    path = f"/desk/chat/{chat.chat_id}"
    with signed_in(browser, server, staff["Анна"]) as first, signed_in(browser, server, staff["Борис"]) as second:
        first_page = opened(first, server, path)
        expect(first_page.locator("#presence")).to_be_empty()
        first_page.evaluate(MOVED)
        second_page = opened(second, server, path)
        expect(first_page.locator("#presence")).to_have_text("Борис тоже смотрит этот чат")
        expect(second_page.locator("#presence")).to_have_text("Анна тоже смотрит этот чат")
        headers = {"Authorization": f"Bearer {token('acme', 'visit', subject=chat.subject)}"}
        assert acme.post(f"/chats/{chat.chat_id}/typing", json={"active": True}, headers=headers).is_success
        expect(second_page.locator("#typing")).to_have_text("Клиент печатает…")
        second_page.close()
        expect(first_page.locator("#presence")).to_be_empty()
        assert first_page.evaluate("window.moved") == []


def test_signing_out_elsewhere_closes_an_open_page(
    browser: Browser, server: Server, staff: Mapping[str, Operator]
) -> None:
    with signed_in(browser, server, staff["Борис"]) as context:
        page = opened(context, server, "/desk")
        operator_sessions.end_all(staff["Борис"])
        expect(page.get_by_role("heading", name="Вход для сотрудников")).to_be_visible()


def test_everything_can_be_read_and_done_without_scripts(
    browser: Browser, server: Server, staff: Mapping[str, Operator], chat: Chat
) -> None:
    with acting_as(Tenant("acme", "anna")):
        known = {one.title for one in replies.all()}
        if "Склад" not in known:
            replies.add("Склад", "Заказ на складе, {operator}.")
    with signed_in(browser, server, staff["Анна"], scripts=False) as context:
        page = context.new_page()
        page.goto(f"{server.url}/desk?view=all")
        page.locator(f'.row[data-id="{chat.chat_id}"] a').click()
        expect(page.locator(".message.customer")).to_contain_text("Где мой заказ?")
        page.get_by_role("button", name="Взять").click()
        expect(page.locator(".about .tag")).to_have_text("Анна")
        page.locator(".canned summary").click()
        expect(page.locator(".canned")).to_contain_text("Заказ на складе, Анна.")
        page.locator("#text").fill("Проверю на складе")
        page.get_by_role("button", name="В заметки").click()
        expect(page.locator(".message.is-note")).to_contain_text("Проверю на складе")
        page.locator("#text").fill("Заказ на складе")
        page.get_by_role("button", name="Ответить").click()
        expect(page.locator(".message.operator.is-text")).to_contain_text("Заказ на складе")
        page.get_by_role("combobox", name="Кому передать").select_option(label="Борис")
        page.get_by_role("button", name="Передать").click()
        expect(page.locator(".about .tag")).to_have_text("Борис")
        page.get_by_role("button", name="Отложить").click()
        expect(page.locator(".about .tag")).to_have_text(["Борис", "Отложен"])
        page.get_by_role("button", name="Завершить").click()
        expect(page.locator(".about .tag")).to_have_text("Завершён")
        page.get_by_role("button", name="Открыть снова").click()
        expect(page.locator(".about .tag")).to_have_text("Анна")


def test_an_act_on_a_chat_that_has_changed_is_refused_and_explained(
    browser: Browser, server: Server, staff: Mapping[str, Operator], chat: Chat
) -> None:
    with signed_in(browser, server, staff["Анна"], scripts=False) as context:
        page = context.new_page()
        page.goto(f"{server.url}/desk/chat/{chat.chat_id}")
        with acting_as(desk.acting(staff["Борис"])):
            store.take(chat.chat_id, name="Борис")
        page.get_by_role("button", name="Взять").click()
        expect(page.locator("#fault")).to_contain_text("у сотрудника")
        expect(page.locator(".about .tag")).to_have_text("Борис")


def test_a_canned_reply_goes_in_at_the_caret_and_keys_are_explained(
    browser: Browser, server: Server, staff: Mapping[str, Operator], chat: Chat
) -> None:
    with acting_as(Tenant("acme", "anna")):
        replies.add("Обращение", "обращение {ticket}")
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, f"/desk/chat/{chat.chat_id}")
        page.keyboard.press("c")
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Обращение").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#text")).to_have_value(f"обращение {chat.ticket_id}")
        expect(page.locator("#text")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("вернуть помощнику")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        page.keyboard.press("g")
        expect(page).to_have_url(f"{server.url}/desk")
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("мой заказ")
        page.keyboard.press("Enter")
        expect(page.locator(f'.row[data-id="{chat.chat_id}"]')).to_be_visible()
        page.locator("h1").click()
        page.keyboard.press("j")
        expect(page.locator(".row a").first).to_be_focused()


def test_an_article_from_a_chat_and_the_chat_link_to_each_other(
    browser: Browser, server: Server, staff: Mapping[str, Operator], chat: Chat
) -> None:
    path = f"/desk/chat/{chat.chat_id}"
    with signed_in(browser, server, staff["Анна"]) as editing, signed_in(browser, server, staff["Борис"]) as answering:
        theirs = opened(answering, server, path)
        expect(theirs.get_by_role("button", name="Написать статью")).to_have_count(0)
        page = opened(editing, server, path)
        page.get_by_role("button", name="Написать статью").click()
        expect(page.get_by_label("Заголовок")).to_have_value("Где мой заказ?")
        page.get_by_role("link", name="из чата").click()
        expect(page).to_have_url(f"{server.url}{path}")
        link = page.locator(".details").get_by_role("link", name="Где мой заказ?")
        expect(link).to_be_visible()
        expect(page.get_by_role("button", name="Написать статью")).to_have_count(0)
        theirs.reload()
        expect(theirs.locator(".details").get_by_role("link", name="Где мой заказ?")).to_be_visible()


def test_a_suggested_reply_is_inserted_changed_and_sent_by_keys(
    browser: Browser, server: Server, staff: Mapping[str, Operator], acme: httpx.Client
) -> None:
    asked = desk.asked("acme", f"v:{uuid4().hex}", "Что означает код E20 на стиральной машине?", "Ау!")
    chat = desk.waiting("acme", asked)
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, f"/desk/chat/{chat.chat_id}")
        page.keyboard.press("a")
        card = page.locator(".suggestion")
        expect(card.locator(".claims .supported").first).to_be_visible()
        card.locator(".evidence summary").click()
        expect(card.locator(".passages mark").first).to_be_visible()
        page.keyboard.press("i")
        text = page.locator("#text")
        expect(text).to_have_value(re.compile("E20"))
        expect(text).not_to_have_value(re.compile(r"\[\d"))
        text.press_sequentially(" Приедет мастер.")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".message.operator .bubble")).to_contain_text("Приедет мастер.")
        expect(card).to_contain_text("отправлена с правкой")
        expect(card.locator("button")).to_have_count(0)
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        expect(card).to_have_count(2)
        page.get_by_role("button", name="Не подходит").click()
        expect(card.last).to_contain_text("отклонена")
        expect(page.locator(".event").last).to_contain_text("Подсказка помощника отклонена.")


def test_a_key_undoes_an_action_and_similar_ended_chats_are_shown(
    browser: Browser, server: Server, staff: Mapping[str, Operator]
) -> None:
    words = f"Барабан скрипит после доставки {uuid4().hex[:6]}"
    with acting_as(desk.acting(staff["Анна"])):
        ended = desk.asked("acme", f"v:{uuid4().hex}", words)
        store.reply(ended.chat_id, "Снимите транспортные болты.", seen=1, name="Анна")
        store.resolve(ended.chat_id)
    chat = desk.waiting("acme", desk.asked("acme", f"v:{uuid4().hex}", words))
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, f"/desk/chat/{chat.chat_id}")
        expect(page.locator(".similar")).to_contain_text("Снимите транспортные болты.")
        page.locator(".similar [data-insert]").first.click()
        expect(page.locator("#text")).to_have_value("Снимите транспортные болты.")
        page.keyboard.press("Escape")
        page.keyboard.press("e")
        expect(page.locator(".about .tag")).to_have_text("Завершён")
        page.keyboard.press("u")
        expect(page.locator(".about .tag")).to_have_text("Ждёт")
        expect(page.locator('[data-hotkey="u"]')).to_have_count(0)
        expect(page.locator(".event").last).to_contain_text("отменено")


def test_whoever_wants_to_hears_that_somebody_waits_and_sees_how_many(
    browser: Browser, server: Server, staff: Mapping[str, Operator], acme: httpx.Client, token: Callable[..., str]
) -> None:
    def call(words: str) -> None:
        chat = desk.asked("acme", f"v:{uuid4().hex}", words)
        headers = {"Authorization": f"Bearer {token('acme', 'visit', subject=chat.subject)}"}
        assert acme.post(f"/chats/{chat.chat_id}/person", headers=headers).is_success

    with signed_in(browser, server, staff["Борис"]) as context:
        context.add_init_script(
            "window.tones = 0; const start = OscillatorNode.prototype.start;"
            "OscillatorNode.prototype.start = function (...when) { window.tones += 1; start.apply(this, when); };"
        )
        page = opened(context, server, "/desk")
        sound = page.get_by_role("button", name="Звук")
        expect(sound).to_have_attribute("aria-pressed", "false")
        call("Тихо")
        expect(page.locator(".row", has_text="Тихо")).to_be_visible()
        assert page.evaluate("window.tones") == 0
        sound.click()
        expect(sound).to_have_attribute("aria-pressed", "true")
        assert page.evaluate("window.tones") == 2
        call("Громко")
        expect(page.locator(".row", has_text="Громко")).to_be_visible()
        waiting = page.locator('.views [data-id="waiting"] .number').text_content()
        expect(page).to_have_title(re.compile(rf"^\({waiting}\) "))
        # The rows and the tones are of one and the same step.
        assert page.evaluate("window.tones") == 4


def test_all_gaps_of_a_page_are_dismissed_at_once(
    browser: Browser, server: Server, staff: Mapping[str, Operator], acme: httpx.Client
) -> None:
    for question in ("Можно ли покрасить корпус?", "Есть ли прокат пылесосов?"):
        acme.post("/ask/run", json={"question": question}).raise_for_status()
    with signed_in(browser, server, staff["Анна"]) as context:
        page = context.new_page()
        page.goto(f"{server.url}/desk/gaps")
        rows, everything = page.locator(".gap input[type=checkbox]"), page.get_by_label("Выбрать все на странице")

        def are_listed() -> bool:
            page.reload()
            return rows.count() >= 2

        wait_until(are_listed)
        number = rows.count()
        everything.check()
        expect(page.locator(".gap input:checked")).to_have_count(number)
        rows.first.uncheck()
        expect(everything).not_to_be_checked()
        everything.check()
        page.locator("#bulk").get_by_role("button", name="Отклонить").click()
        expect(page.get_by_role("link", name="Отклонённые")).to_contain_text(str(number))


@pytest.mark.parametrize(
    ("key", "code", "searches"),
    [(".", "Slash", True), ("/", "Slash", True), (".", "Period", False), (",", "Comma", False)],
)
def test_a_slash_is_where_the_keyboard_has_it(
    browser: Browser, server: Server, staff: Mapping[str, Operator], key: str, code: str, searches: bool
) -> None:
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, "/desk")
        page.evaluate(
            "([key, code]) => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, code, bubbles: true}))",
            [key, code],
        )
        assert (page.evaluate("document.activeElement.type") == "search") == searches
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_moments_are_written_in_the_readers_time_and_language(
    browser: Browser, server: Server, staff: Mapping[str, Operator], chat: Chat
) -> None:
    moment = datetime(2026, 3, 1, 21, 30, tzinfo=UTC)
    with database.across_tenants(write=True) as session:
        session.execute(update(ChatMessageRow).where(ChatMessageRow.chat_id == chat.chat_id).values(created_at=moment))
    with signed_in(browser, server, staff["Анна"]) as context:
        page = opened(context, server, f"/desk/chat/{chat.chat_id}")
        expect(page.locator(".message.customer time")).to_have_text("2 мар. 2026 г., 00:30")
