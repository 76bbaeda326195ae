"""A customer's conversation in the chat, also over a bad connection."""

import re

import pytest
from playwright.sync_api import BrowserContext, FilePayload, Page, expect

from tests.browser.conftest import ask, eventually, host_page, last_answer, open_chat
from tests.browser.fake_service import SITE, FakeService, shop
from tests.browser.turns import OUTCOMES, Json, turn


def _shows(page: Page, *texts: str) -> None:
    """Check the messages with texts, and their number."""
    expect(page.locator(".message .text")).to_have_text(list(texts))


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


def _three_sentences() -> Json:
    return turn("answered", "Первое предложение. Второе предложение. Третье предложение.", turn_id="turn-s")


def test_an_answer_appears_sentence_by_sentence_and_ends_as_it_is_stored(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    expect(opened.locator(".live .stage")).to_be_visible()
    full_turn = _three_sentences()
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
    for name, data in _turn_events(_three_sentences())[:5]:
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
    full_turn = _three_sentences()
    for place, (name, data) in enumerate(_turn_events(full_turn)):
        service.push(name, data)
        if place == cut:
            service.cut()
    service.say(full_turn)
    expect(last_answer(opened).locator(".text")).to_have_text(
        "Первое предложение. Второе предложение. Третье предложение."
    )
    expect(opened.locator(".live")).to_have_count(0)
    _shows(opened, "Вопрос", "Первое предложение. Второе предложение. Третье предложение.")


def test_eight_tabs_share_one_stream(context: BrowserContext, service: FakeService, address: str) -> None:
    service.begin()
    pages = [context.new_page() for _ in range(8)]
    for page in pages:
        page.goto(address)
        open_chat(page)
    ask(pages[5], "Вопрос")
    service.say(_three_sentences())
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
    for name, data in _turn_events(_three_sentences())[:4]:
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
    _shows(opened, "Вопрос")


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
    service.answers.append(_three_sentences())
    expect(last_answer(page).locator(".text")).to_contain_text("Первое предложение.")
    expect(page.locator(".unsent, .banner, .live")).to_have_count(0)
    assert len({call["client_id"] for call in service.called("/messages")}) == 1


def test_rate_limited_message_is_sent_by_its_button(opened: Page, service: FakeService) -> None:
    ask(opened, "Первый")
    service.wait_for("customer")
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (429, "rate_limited")
    service.retry_after = 4_000
    ask(opened, "Второй")
    expect(opened.locator(".unsent")).to_contain_text("Отправится через 67 мин")
    service.refusal = None
    opened.get_by_role("button", name="Отправить сейчас").click()
    _shows(opened, "Первый", "Второй")


def test_rate_limited_stream_says_so_and_goes_on(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    service.refused_paths, service.refusal = {"/chats/chat-1/events"}, (429, "rate_limited")
    service.cut()
    expect(opened.locator(".banner")).to_have_text("Слишком много запросов. Переписка обновится чуть позже.")
    expect(opened.locator(".live .stage")).to_have_text("Ответ придёт чуть позже…")
    service.refusal = None
    service.say(_three_sentences())
    expect(last_answer(opened).locator(".text")).to_contain_text("Первое предложение.")
    expect(opened.locator(".banner")).to_have_count(0)


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


def test_nobody_writes_before_they_agree(page: Page, service: FakeService, address: str) -> None:
    service.site["consent"] = {
        "text": "Согласен на обработку персональных данных",
        "url": "https://pristan.example/law",
    }
    page.goto(address)
    open_chat(page)
    box = page.get_by_role("checkbox")
    expect(box).not_to_be_checked()
    ask(page, "Вопрос")
    expect(page.locator(".banner")).to_contain_text("отметьте согласие")
    assert service.called("/messages") == []
    box.check()
    page.get_by_role("button", name="Отправить").click()
    expect(page.locator(".message.customer")).to_have_count(1)
    expect(box).to_have_count(0)
    assert service.wait_for_call("/consent") == [{"text": "Согласен на обработку персональных данных"}]


def test_whoever_has_withdrawn_their_consent_is_asked_for_it_again(
    page: Page, service: FakeService, address: str
) -> None:
    service.begin()
    service.site["consent"] = {"text": "Согласен на обработку", "url": None}
    page.goto(address)
    open_chat(page)
    box = page.get_by_role("checkbox")
    box.check()
    ask(page, "Вопрос")
    expect(box).to_have_count(0)
    service.refused_paths, service.refusal = {"/chats/chat-1/messages"}, (403, "consent_withdrawn")
    ask(page, "Ещё вопрос")
    expect(box).not_to_be_checked()
    expect(page.locator(".unsent")).to_contain_text("Ещё вопрос")
    service.refusal = None
    box.check()
    page.locator(".unsent").get_by_role("button").click()
    expect(page.locator(".unsent")).to_have_count(0)
    expect(box).to_have_count(0)
    _shows(page, "Вопрос", "Ещё вопрос")


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
    service.answers = [_three_sentences(), turn("answered", "Другой ответ.", turn_id="turn-2")]
    ask(opened, "Вопрос")
    opened.get_by_role("button", name="Ответить заново").click()
    expect(last_answer(opened)).to_contain_text("Другой ответ")
    assert service.called("/regenerate") == [{"turn_id": "turn-s"}]
    _shows(opened, "Вопрос", "Другой ответ.")


def test_the_last_question_can_be_edited(opened: Page, service: FakeService) -> None:
    service.answers = [_three_sentences()]
    ask(opened, "Вапрос")
    opened.get_by_role("button", name="Изменить").click()
    expect(opened.locator("textarea")).to_have_value("Вапрос")
    ask(opened, "Вопрос")
    expect(opened.locator("textarea")).to_have_value("")
    [edit] = service.wait_for_call("/edit")
    assert (edit["message_id"], edit["text"]) == ("m1", "Вопрос")
    service.add("customer", "Вопрос", body={"replaces": "m1"})
    _shows(opened, "Вопрос")


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
    _shows(opened, "Заново")


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


def _file(name: str, content: bytes = b"%PDF") -> FilePayload:
    return {"name": name, "mimeType": "application/pdf", "buffer": content}


def test_a_file_goes_with_a_message(opened: Page, service: FakeService) -> None:
    service.begin()
    service.held_paths.add("/chats/chat-1/files")
    opened.locator("input[type=file]").set_input_files(_file("чек.pdf"))
    expect(opened.get_by_role("progressbar", name="чек.pdf")).to_be_visible()
    expect(opened.get_by_role("button", name="Отправить")).to_be_disabled()
    service.release()
    expect(opened.locator(".attachment")).to_contain_text("20 КБ")
    expect(opened.locator(".attachment progress")).to_have_count(0)
    ask(opened, "Вот чек")
    [sent] = service.wait_for_call("/messages")
    assert (sent["text"], sent["file_id"]) == ("Вот чек", "f1")
    expect(opened.get_by_role("button", name="Скачать файл чек.pdf")).to_be_visible()
    with opened.expect_download() as download:
        opened.get_by_role("button", name="Скачать файл чек.pdf").click()
    assert download.value.suggested_filename == "чек.pdf"


_GIVE = """(place, [name, files]) => {
  const data = new DataTransfer();
  for (const file of files) data.items.add(new File(['%PDF'], file, {type: 'application/pdf'}));
  const drag = {dataTransfer: data, bubbles: true, cancelable: true};
  const event = name === 'paste' ? new ClipboardEvent(name, {...drag, clipboardData: data}) : new DragEvent(name, drag);
  return !place.dispatchEvent(event);
}"""


def test_a_file_can_be_dropped_and_pasted_and_removed(opened: Page, service: FakeService) -> None:
    frame, attachment = opened.locator(".frame"), opened.locator(".attachment")
    assert frame.evaluate(_GIVE, ["dragover", ["чек.pdf"]])
    expect(frame).to_have_class(re.compile("dropping"))
    assert frame.evaluate(_GIVE, ["drop", ["чек.pdf", "второй.pdf"]])
    expect(frame).not_to_have_class(re.compile("dropping"))
    expect(attachment).to_contain_text("20 КБ")
    expect(opened.locator(".banner")).to_contain_text("один файл")
    opened.get_by_role("button", name="Убрать файл чек.pdf").click()
    expect(attachment).to_have_count(0)
    assert opened.locator("textarea").evaluate(_GIVE, ["paste", ["снимок.png"]])
    expect(attachment).to_contain_text("20 КБ")
    opened.keyboard.press("Enter")
    expect(opened.locator(".message.customer .file")).to_contain_text("чек.pdf")
    [sent] = service.wait_for_call("/messages")
    assert (sent["text"], sent["file_id"]) == ("", "f1")


def test_a_file_that_is_refused_says_why(opened: Page, service: FakeService) -> None:
    service.begin()
    field, attachment = opened.locator("input[type=file]"), opened.locator(".attachment")
    field.set_input_files(_file("big.pdf", b"x" * 1_100_000))
    expect(attachment).to_contain_text("Файл больше 977 КБ")
    service.refused_paths, service.refusal = {"/chats/chat-1/files"}, (422, "Такие файлы не принимаются")
    field.set_input_files(_file("virus.exe"))
    expect(attachment).to_contain_text("Такие файлы не принимаются")
    ask(opened, "Без файла")
    [sent] = service.wait_for_call("/messages")
    assert "file_id" not in sent
    expect(attachment).to_have_count(0)


def test_a_site_that_takes_no_files_shows_no_clip(page: Page, service: FakeService, address: str) -> None:
    service.site["limits"] = {"file_bytes": 0, "question": 2_000}
    page.goto(address)
    open_chat(page)
    expect(page.locator("input[type=file]")).to_have_count(0)
    assert page.locator(".frame").evaluate(_GIVE, ["drop", ["чек.pdf"]])  # the page is not left for the file
    expect(page.locator(".attachment")).to_have_count(0)


def test_a_conversation_is_rated_after_its_end_and_not_before(opened: Page, service: FakeService) -> None:
    service.answers = [_three_sentences()]
    ask(opened, "Вопрос")
    expect(last_answer(opened)).to_contain_text("Третье")
    expect(opened.locator(".rating")).to_have_count(0)
    service.change(state="resolved", owner="nobody")
    opened.get_by_role("radio", name="4 из 5").check(force=True)
    opened.get_by_label("Что можно улучшить").fill("Всё понятно")
    opened.get_by_role("button", name="Отправить оценку").click()
    expect(opened.locator(".rating")).to_have_text("Спасибо за оценку!")
    assert service.called("/rating") == [{"csat": 4, "comment": "Всё понятно"}]


def test_a_waiting_customer_says_where_to_reply(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    form = opened.locator(".contact")
    expect(form).to_have_count(0)
    service.change(state="queued", owner="nobody", contact_wanted=True)
    field, save = form.get_by_label("Куда прислать ответ, если вы закроете чат?"), form.get_by_role("button")
    service.refused_paths, service.refusal = {"/chats/chat-1/contact"}, (422, "contact_invalid")
    field.fill("Анна")
    save.click()
    expect(opened.get_by_role("alert")).to_have_text("Укажите адрес почты или номер телефона.")
    service.refusal = None
    field.fill("anna@example.ru")
    save.click()
    service.wait_for_call("/contact")
    expect(opened.get_by_role("alert")).to_have_count(0)
    service.change(state="queued", owner="nobody", contact_wanted=False)
    expect(form).to_have_count(0)
    assert service.called("/contact")[-1] == {"contact": "anna@example.ru"}


def test_the_conversation_can_be_downloaded(opened: Page, service: FakeService) -> None:
    service.answers = [_three_sentences()]
    ask(opened, "Вопрос")
    with opened.expect_download() as download:
        opened.get_by_role("button", name="Скачать переписку").click()
    assert download.value.suggested_filename == "chat.txt"


def test_the_conversation_can_be_printed_under_a_strict_policy(page: Page, service: FakeService) -> None:
    service.begin()
    service.say(OUTCOMES["answered"]())
    page.add_init_script(
        "const open = window.open;"
        "window.open = (...all) => Object.assign(open(...all), {print() { this.printed = true }})"
    )
    policy = (
        f"default-src 'none'; script-src {service.url}; connect-src {service.url}; require-trusted-types-for 'script'"
    )
    with shop(host_page(service), policy=policy) as address:
        page.goto(address)
        open_chat(page)
        with page.expect_popup() as popup:
            page.get_by_role("button", name="Напечатать переписку").click()
        paper = popup.value
        expect(paper.locator("h1")).to_have_text("Магазин «Пристань»")
        expect(paper.locator(".text")).to_contain_text("Вода не сливается")
        expect(paper.get_by_text("Закрутите фильтр")).to_be_visible()
        expect(paper.get_by_role("button", name="Ответить заново")).to_be_hidden()
        expect(paper.locator("main")).to_have_css("max-width", "760px")
        # Waiting in the page itself would evaluate strings, which its policy forbids.
        assert eventually(page, lambda: paper.evaluate("window.printed"), True)


def test_unread_messages_are_counted_on_the_button(opened: Page, service: FakeService) -> None:
    service.answers = [_three_sentences()]
    ask(opened, "Вопрос")
    expect(last_answer(opened)).to_contain_text("Третье")
    opened.keyboard.press("Escape")
    launcher = opened.locator(".launcher")
    expect(launcher).to_be_focused()
    service.add("operator", "Здравствуйте", name="Анна")
    expect(opened.locator(".badge")).to_have_text("1")
    expect(launcher).to_have_attribute("aria-label", "Открыть чат с поддержкой. Непрочитанных сообщений: 1")
    launcher.click()
    expect(opened.locator(".badge")).to_be_hidden()
    service.wait_for_call("/seen", lambda body: body["seq"] == len(service.messages))


def test_an_answer_can_be_judged(opened: Page, service: FakeService) -> None:
    service.answers = [_three_sentences()]
    ask(opened, "Вопрос")
    button = opened.get_by_role("button", name="Да", exact=True)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert service.wait_for_call("/feedback") == [{"turn_id": "turn-s", "thumb": "up"}]


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


def test_a_page_in_english_has_english_texts_and_right_to_left_stays_whole(page: Page, service: FakeService) -> None:
    service.begin()
    service.say(OUTCOMES["answered"]())
    with shop(host_page(service).replace('lang="ru"', 'lang="en" dir="rtl"')) as address:
        page.goto(address)
        open_chat(page)
        expect(page.locator("textarea")).to_have_attribute("placeholder", "Ask a question…")
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
