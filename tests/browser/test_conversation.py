"""A customer's conversation in the chat, also over a bad connection."""

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import ask, host_page, last_answer, open_chat, shows
from tests.browser.fake_service import SITE, FakeService, shop
from tests.browser.turns import OUTCOMES, Json, turn


def _turn_events(full_turn: Json) -> list[tuple[str, Json]]:
    """Return the events of an answer in the order of the service."""
    answer = full_turn["answer"]
    assert isinstance(answer, dict)
    pieces = [f"{piece}. " for piece in str(answer["text"]).split(". ")]
    pieces[-1] = pieces[-1].removesuffix(". ")
    events: list[tuple[str, Json]] = [
        ("accepted", {}),
        ("stage", {"node": "retrieve", "iteration": 1}),
        ("sources-early", {"citations": full_turn["citations"], "provisional": True}),
        *(("token", {"text": piece, "provisional": False}) for piece in pieces),
        ("claim", {"index": 1, "status": "supported"}),
        ("verdict", {"route": "auto"}),
        ("result", full_turn),
    ]
    return [(name, {**data, "turn_id": full_turn["turn_id"]}) for name, data in events]


def three_sentences() -> Json:
    return turn("answered", "Первое предложение. Второе предложение. Третье предложение.", turn_id="turn-s")


def test_an_answer_appears_sentence_by_sentence_and_ends_as_it_is_stored(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    expect(opened.locator(".live .stage")).to_be_visible()
    full_turn = three_sentences()
    events = _turn_events(full_turn)
    for name, data in events[:4]:
        service.push(name, data)
    expect(opened.locator(".live .text")).to_have_text("Первое предложение.")
    for name, data in events[4:]:
        service.push(name, data)
    service.say(full_turn)
    expect(opened.locator(".live")).to_have_count(0)
    expect(last_answer(opened).locator(".text")).to_have_text(
        "Первое предложение. Второе предложение. Третье предложение."
    )
    expect(opened.locator(".message.bot .answer")).to_have_count(1)
    expect(opened.locator("[role=status].hidden")).to_contain_text("Третье предложение")


def test_a_correction_replaces_and_a_withdrawal_removes_what_was_shown(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    for name, data in _turn_events(three_sentences())[:5]:
        service.push(name, data)
    expect(opened.locator(".live .text")).to_contain_text("Второе")
    service.push("revise", {"turn_id": "turn-s", "text": "Исправлено."})
    expect(opened.locator(".live .text")).to_have_text("Исправлено.")
    expect(opened.locator(".live .notice")).to_have_text("Ответ исправлен после проверки")
    service.push("retract", {"turn_id": "turn-s", "what": "answer", "notice": "Ответ отозван."})
    expect(opened.locator(".live .text")).to_have_count(0)
    expect(opened.locator(".live .notice")).to_contain_text("отозван")


@pytest.mark.parametrize("cut", range(9))
def test_a_connection_cut_after_any_event_changes_nothing_in_the_end(
    opened: Page, service: FakeService, cut: int
) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    full_turn = three_sentences()
    for place, (name, data) in enumerate(_turn_events(full_turn)):
        service.push(name, data)
        if place == cut:
            service.cut()
    service.say(full_turn)
    expect(last_answer(opened).locator(".text")).to_have_text(
        "Первое предложение. Второе предложение. Третье предложение."
    )
    expect(opened.locator(".live")).to_have_count(0)
    shows(opened, "Вопрос", "Первое предложение. Второе предложение. Третье предложение.")


def test_eight_tabs_share_one_stream(context: BrowserContext, service: FakeService, address: str) -> None:
    service.begin()
    pages = [context.new_page() for _ in range(8)]
    for page in pages:
        page.goto(address)
        open_chat(page)
    ask(pages[5], "Вопрос")
    service.say(three_sentences())
    for page in pages:
        expect(page.locator(".message.bot .text")).to_contain_text("Третье предложение")
        expect(page.locator(".message.customer")).to_have_count(1)
    assert service.most_streams == 1
    pages[0].close()
    service.add("operator", "Вы ещё здесь?", name="Анна")
    for page in pages[1:]:
        expect(page.locator(".message.operator")).to_contain_text("Вы ещё здесь?")


def test_windows_without_locks_read_for_themselves_and_show_each_word_once(
    context: BrowserContext, service: FakeService, address: str
) -> None:
    context.add_init_script("delete Navigator.prototype.locks;")
    service.begin()
    pages = [context.new_page() for _ in range(2)]
    for page in pages:
        page.goto(address)
        open_chat(page)
    ask(pages[0], "Вопрос")
    for page in pages:
        expect(page.locator(".message.customer:not(.unsent)")).to_have_count(1)
    for name, data in _turn_events(three_sentences())[:4]:
        service.push(name, data)
    for page in pages:
        expect(page.locator(".live .text")).to_have_text("Первое предложение.")


def test_what_is_written_offline_is_sent_once_it_can_be(
    context: BrowserContext, opened: Page, service: FakeService
) -> None:
    context.set_offline(True)
    ask(opened, "Вопрос")
    expect(opened.locator(".unsent")).to_have_count(1)
    expect(opened.locator(".banner")).to_contain_text("Нет связи")
    context.set_offline(False)
    expect(opened.locator(".unsent")).to_have_count(0)
    assert [body["text"] for body in service.called("/messages")] == ["Вопрос"]
    shows(opened, "Вопрос")


def test_rate_limited_message_waits_and_survives_a_reload(page: Page, service: FakeService, address: str) -> None:
    service.begin()
    page.goto(address)
    open_chat(page)
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (429, "rate_limited")
    service.retry_after = 60
    ask(page, "Есть рассрочка?")
    expect(page.get_by_role("alert")).to_have_text("Слишком много сообщений подряд. Подождите 60 с.")
    expect(page.locator(".unsent")).to_contain_text(re.compile(r"Отправится через (60|5\d) с"))
    expect(page.locator(".live")).to_have_count(0)
    service.retry_after = 2
    page.goto(address)
    open_chat(page)
    expect(page.locator(".unsent")).to_contain_text("Отправится через")
    service.refusal = None
    service.answers.append(three_sentences())
    expect(last_answer(page).locator(".text")).to_contain_text("Первое предложение.")
    expect(page.locator(".unsent, .banner, .live")).to_have_count(0)
    assert len({call["client_id"] for call in service.called("/messages")}) == 1


def second_is_refused(page: Page, service: FakeService, code: str, *, retry_after: int) -> None:
    """Send two messages; the second one is refused with 429."""
    ask(page, "Первый")
    service.wait_for("customer")
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (429, code)
    service.retry_after = retry_after
    ask(page, "Второй")


def test_rate_limited_message_is_sent_by_its_button(opened: Page, service: FakeService) -> None:
    second_is_refused(opened, service, "rate_limited", retry_after=4_000)
    expect(opened.locator(".unsent")).to_contain_text("Отправится через 67 мин")
    service.refusal = None
    opened.get_by_role("button", name="Отправить сейчас").click()
    shows(opened, "Первый", "Второй")


def test_a_message_without_room_today_fails_without_a_countdown(opened: Page, service: FakeService) -> None:
    second_is_refused(opened, service, "chats_full", retry_after=40_000)
    expect(opened.get_by_role("alert")).to_have_text(
        "Сегодня чат больше не принимает сообщения. Напишите завтра или свяжитесь с нами другим способом."
    )
    expect(opened.locator(".unsent")).not_to_contain_text("Отправится через")
    service.refusal = None
    opened.locator(".unsent").get_by_role("button").first.click()
    shows(opened, "Первый", "Второй")
    expect(opened.locator(".banner")).to_have_count(0)


def test_rate_limited_stream_says_so_and_goes_on(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    service.refused_paths, service.refusal = {"/chats/chat-1/events"}, (429, "rate_limited")
    service.cut()
    expect(opened.locator(".banner")).to_have_text("Слишком много запросов. Переписка обновится чуть позже.")
    expect(opened.locator(".live .stage")).to_have_text("Ответ придёт чуть позже…")
    service.refusal = None
    service.say(three_sentences())
    expect(last_answer(opened).locator(".text")).to_contain_text("Первое предложение.")
    expect(opened.locator(".banner")).to_have_count(0)


def test_messages_arrive_while_every_stream_is_refused(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    service.refused_paths, service.refusal = {"/chats/chat-1/events"}, (429, "rate_limited")
    service.cut()
    service.add("operator", "Здравствуйте, это Анна.")
    expect(opened.get_by_text("это Анна")).to_be_visible()


def test_a_stream_whose_head_comes_late_is_waited_for(page: Page, service: FakeService, address: str) -> None:
    service.held_paths = {"/chats/chat-1/events"}
    page.clock.install()
    page.goto(address)
    ask(open_chat(page), "Вопрос")
    service.wait_for_call("/chats/chat-1/events")
    polls = len(service.called("/chats/chat-1"))
    page.clock.fast_forward(8_000)
    service.release()
    service.wait_for("customer")
    service.say(three_sentences())
    expect(last_answer(page).locator(".text")).to_contain_text("Первое предложение.")
    assert len(service.called("/chats/chat-1")) == polls


def test_delayed_answer_is_announced_in_place_of_the_search(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    expect(opened.locator(".live .stage")).to_have_text("Ищу в базе знаний…")
    words = "Слишком много вопросов подряд. Ответ придёт через 40 с."
    service.add("system", words, kind="event", body={"event": "delayed"})
    expect(opened.locator(".event")).to_have_text(words)
    ask(opened, "Ещё вопрос")
    expect(opened.locator(".message.customer")).to_have_count(2)
    expect(opened.locator(".unsent")).to_have_count(0)
    expect(opened.locator(".live .stage")).to_have_text("Ответ придёт чуть позже…")


def test_a_message_on_its_way_survives_the_page(page: Page, service: FakeService, address: str) -> None:
    service.begin()
    page.goto(address)
    open_chat(page)
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (503, "unavailable")
    ask(page, "Вопрос")
    expect(page.locator(".unsent")).to_have_count(1)
    service.refusal = None
    page.goto(address)
    open_chat(page)
    expect(page.locator(".unsent")).to_have_count(0)
    sent = {str(body["client_id"]) for body in service.called("/messages")}
    assert len(sent) == 1
    assert [one["text"] for one in service.messages] == ["Вопрос"]


def test_frames_without_storage_have_a_chat_too(page: Page, service: FakeService, address: str) -> None:
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError') }});"
    )
    service.answers = [OUTCOMES["refused"]()]
    page.goto(address)
    open_chat(page)
    ask(page, "Вопрос")
    page.locator('[data-outcome="refused"]').wait_for()


def test_a_person_takes_over_and_leaves(opened: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["cannot_answer"]()]
    ask(opened, "Вопрос")
    opened.get_by_role("button", name="Спросить сотрудника").click()
    expect(opened.locator(".event").last).to_contain_text("передан сотруднику")
    expect(opened.locator(".status")).to_have_text("Ожидаем ответа сотрудника")
    expect(opened.get_by_role("button", name="Позвать сотрудника")).to_have_count(0)
    service.add("system", kind="event", name="Анна", body={"event": "joined", "name": "Анна"})
    service.change(state="human", owner="human", assignee_name="Анна")
    expect(opened.locator(".status")).to_have_text("Анна на связи")
    service.push("typing", {"who": "operator", "name": "Анна", "active": True})
    expect(opened.locator(".typing")).to_contain_text("Анна печатает")
    service.add("operator", "Здравствуйте, я помогу.", name="Анна")
    expect(opened.locator(".typing")).to_have_count(0)
    expect(opened.locator(".message.operator")).to_contain_text("я помогу")
    opened.locator("textarea").press_sequentially("Спа")
    ask(opened, "Спасибо")
    service.wait_for_call("/typing", lambda body: body == {"active": True})
    service.push("token", {"turn_id": "late", "text": "Бот говорит дальше.", "provisional": False})
    service.add("system", kind="event", body={"event": "handed_back"})
    service.change(state="bot", owner="bot", assignee_name=None)
    expect(opened.locator(".event").last).to_contain_text("снова отвечает помощник")
    expect(opened.locator(".messages")).not_to_contain_text("Бот говорит дальше")


def test_stop_ends_an_answer(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    opened.get_by_role("button", name="Остановить ответ").click()
    expect(opened.locator(".live")).to_have_count(0)
    service.push("token", {"turn_id": "turn-s", "text": "Поздно."})
    service.add("system", kind="event", body={"event": "stopped"})
    expect(opened.locator(".event").last).to_have_text("Ответ остановлен")
    assert service.wait_for_call("/stop") == [{}]
    expect(opened.locator(".live")).to_have_count(0)


def test_another_answer_takes_the_place_of_the_first(opened: Page, service: FakeService) -> None:
    service.answers = [three_sentences(), turn("answered", "Другой ответ.", turn_id="turn-2")]
    ask(opened, "Вопрос")
    opened.get_by_role("button", name="Ответить заново").click()
    expect(last_answer(opened)).to_contain_text("Другой ответ")
    assert service.called("/regenerate") == [{"turn_id": "turn-s"}]
    shows(opened, "Вопрос", "Другой ответ.")


def test_the_last_question_can_be_edited(opened: Page, service: FakeService) -> None:
    service.answers = [three_sentences()]
    ask(opened, "Вапрос")
    opened.get_by_role("button", name="Изменить").click()
    expect(opened.locator("textarea")).to_have_value("Вапрос")
    ask(opened, "Вопрос")
    expect(opened.locator("textarea")).to_have_value("")
    [edit] = service.wait_for_call("/edit")
    assert (edit["message_id"], edit["text"]) == ("m1", "Вопрос")
    service.add("customer", "Вопрос", body={"replaces": "m1"})
    shows(opened, "Вопрос")


def _is_shown(page: Page, button: str, number: int) -> bool:
    opacity = "button => getComputedStyle(button.closest('.again')).opacity"
    return str(page.get_by_role("button", name=button, exact=True).nth(number).evaluate(opacity)) == "1"


def test_an_earlier_question_is_edited_and_takes_later_ones_with_it(opened: Page, service: FakeService) -> None:
    service.answers = [turn("answered", "Первый."), turn("answered", "Второй.", turn_id="turn-2")]
    for question in ("Раз", "Два"):
        ask(opened, question)
        expect(last_answer(opened)).to_contain_text("Первый" if question == "Раз" else "Второй")
    expect(opened.get_by_role("button", name="Ответить заново отсюда")).to_have_count(1)
    assert not _is_shown(opened, "Изменить", 0)
    opened.locator(".message.customer").first.hover()
    opened.get_by_role("button", name="Изменить", exact=True).first.click()
    expect(opened.locator(".editing")).to_contain_text("исчезнут")
    ask(opened, "Заново")
    [edit] = service.wait_for_call("/edit")
    assert edit["message_id"] == "m1"
    service.add("customer", "Заново", body={"replaces": "m1"})
    shows(opened, "Заново")


def test_what_was_said_before_a_person_replied_cannot_be_edited(opened: Page, service: FakeService) -> None:
    service.answers = [turn("answered", "Первый.")]
    ask(opened, "Раз")
    expect(last_answer(opened)).to_contain_text("Первый")
    service.add("operator", "Добрый день!", name="Анна")
    expect(opened.locator(".message.operator")).to_be_visible()
    expect(opened.get_by_role("button", name="Изменить")).to_have_count(0)
    expect(opened.get_by_role("button", name="Ответить заново")).to_have_count(0)


def test_a_chat_page_with_tools_shows_the_meter_and_branches(page: Page, service: FakeService) -> None:
    spent = {"latency_ms": 1_234.0, "llm_calls": 2, "tokens": {"total": 3456}, "cost_usd": 0.0012}
    answer = turn("answered", "Первый.")
    meta = answer["meta"]
    assert isinstance(meta, dict)
    service.answers = [{**answer, "meta": meta | spent}]
    service.tools = True
    page.goto(f"{service.url}/chat/{SITE}")
    ask(page, "Раз")
    expect(page.locator(".meter")).to_have_text("1,2 с · обращений к модели: 2, токенов: 3 456 · $0,0012")
    page.get_by_role("button", name="Продолжить в новом чате").click()
    expect(page.locator(".event")).to_contain_text("Этот чат продолжает прежний.")
    assert service.called("/branch") == [{"message_id": "m2"}]
    page.get_by_role("button", name="Открыть").click()
    expect(page.locator(".event")).to_have_count(0)


def test_a_person_who_looks_and_types_is_shown_and_so_is_the_customer(opened: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["human_followup"]()]
    ask(opened, "Позовите человека")
    expect(last_answer(opened)).to_contain_text("T-20417")
    service.change(state="human", owner="human", assignee_name="Анна")
    expect(opened.locator(".status")).to_have_text("Анна на связи")
    service.push("presence", {"who": "operator", "name": "Анна", "active": True})
    expect(opened.locator(".typing")).to_have_text("Анна читает переписку")
    service.push("typing", {"who": "operator", "name": "Анна", "active": True})
    expect(opened.locator(".typing")).to_have_text("Анна печатает…")
    service.push("typing", {"who": "operator", "name": "Анна", "active": False})
    expect(opened.locator(".typing")).to_have_text("Анна читает переписку")
    service.push("presence", {"who": "operator", "name": "Анна", "active": False})
    expect(opened.locator(".typing")).to_have_count(0)
    opened.locator("textarea").fill("Сп")
    service.wait_for_call("/typing", lambda body: body == {"active": True})
    opened.locator("textarea").fill("")
    service.wait_for_call("/typing", lambda body: body == {"active": False})


def test_whoever_waits_while_nobody_works_is_told_when_somebody_will(opened: Page, service: FakeService) -> None:
    service.begin()
    service.site["hours"] = {"open": False, "text": "Сотрудники ответят завтра с 8:00"}
    opened.reload()
    open_chat(opened)
    opened.get_by_role("button", name="Позвать сотрудника").click()
    expect(opened.locator(".status")).to_have_text("Сотрудники ответят завтра с 8:00")


def test_everything_works_by_keyboard(page: Page, service: FakeService, address: str) -> None:
    service.answers = [OUTCOMES["answered"]()]
    page.goto(address)
    page.locator(".launcher").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("textarea")).to_be_focused()
    page.keyboard.type("Ошибка E20")
    page.keyboard.press("Enter")
    number = page.locator(".cite").first
    number.wait_for()
    for _ in range(30):
        page.keyboard.press("Shift+Tab")
        if number.evaluate("one => one.getRootNode().activeElement === one"):
            break
    expect(number).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Закрыть источник")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".passage")).to_be_hidden()
    expect(page.locator(".panel")).to_be_visible()
    expect(number).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_be_hidden()
    expect(page.locator(".launcher")).to_be_focused()


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "origin_forbidden", "Владельцу сайта: добавьте http://127.0.0.1:"),
        (404, "site_unknown", "не настроен"),
        (401, "identity_required", "Войдите"),
        (503, "unavailable", "недоступен"),
        (429, "rate_limited", "Чат откроется через 2 с"),
    ],
)
def test_a_chat_that_cannot_be_had_says_why(
    page: Page, service: FakeService, address: str, status: int, code: str, words: str
) -> None:
    service.refusal = (status, code)
    page.goto(address)
    page.locator(".launcher").click()
    expect(page.get_by_role("alert")).to_contain_text(words)
    expect(page.locator(".status")).to_have_text("")


@pytest.mark.parametrize(("locale", "label"), [("en", "Open the support chat"), ("ru", "Открыть чат с поддержкой")])
def test_a_page_in_an_unknown_language_has_the_texts_of_its_site(
    browser: Browser, service: FakeService, locale: str, label: str
) -> None:
    service.site["locale"] = locale
    german = host_page(service).replace('lang="ru"', 'lang="de"')
    with shop(german) as address, browser.new_context(locale="de-DE") as context:
        page = context.new_page()
        page.goto(address)
        open_chat(page)
        expect(page.locator(".frame")).to_have_attribute("lang", locale)
        expect(page.locator(".launcher")).to_have_attribute("aria-label", label)
        ask(page, "Hallo")
        service.wait_for_call("/chats", lambda body: body.get("locale") == locale)


def test_a_page_in_english_has_english_texts_and_right_to_left_stays_whole(page: Page, service: FakeService) -> None:
    service.begin()
    service.say(OUTCOMES["answered"]())
    with shop(host_page(service).replace('lang="ru"', 'lang="en" dir="rtl"')) as address:
        page.goto(address)
        open_chat(page)
        expect(page.locator("textarea")).to_have_attribute("placeholder", "Write a message…")
        expect(page.locator(".message.bot time")).to_have_text(re.compile(r"\b9:00\sPM"))
        box = page.locator(".frame").bounding_box()
        assert box is not None
        assert box["x"] < 40
        expect(page.locator(".panel")).to_have_attribute("dir", "ltr")


def test_the_line_under_the_name_is_not_cut_off_beside_the_buttons(opened: Page) -> None:
    ask(opened, "E20")
    opened.locator(".top .icon").nth(2).wait_for()
    status = opened.locator(".top .status")
    status.evaluate("line => { line.textContent = 'Answers from the knowledge base' }")
    assert status.evaluate("line => line.scrollWidth <= line.clientWidth")
