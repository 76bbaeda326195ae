"""Files, ratings, contacts and downloads of a conversation."""

import re

from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import ask, eventually, host_page, last_answer, open_chat
from tests.browser.fake_service import FakeService, shop
from tests.browser.test_conversation import three_sentences
from tests.browser.turns import OUTCOMES


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
    expect(attachment).to_contain_text("Файл больше 1 МБ")
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
    service.answers = [three_sentences()]
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


def test_a_contact_is_left_only_with_the_consent_that_the_site_asks_for(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    service.change(state="queued", owner="nobody", contact_wanted=True)
    service.site["consent"] = {"text": "Согласен на обработку", "url": None}
    service.refused_paths, service.refusal = {"/chats/chat-1/contact"}, (403, "consent_missing")
    form, box = opened.locator(".contact"), opened.get_by_role("checkbox")
    form.get_by_role("textbox").fill("anna@example.ru")
    form.get_by_role("button").click()
    expect(box).not_to_be_checked()
    expect(opened.get_by_role("alert")).to_contain_text("отметьте согласие")
    service.refusal = None
    form.get_by_role("button").click()
    box.check()
    form.get_by_role("button").click()
    service.wait_for_call("/consent")
    expect(box).to_have_count(0)
    expect(opened.get_by_role("alert")).to_have_count(0)
    service.wait_for_call("/contact")
    asked = [path.rsplit("/", 1)[1] for _, path, _ in service.calls]
    assert [one for one in asked if one in {"contact", "consent"}] == ["contact", "consent", "contact"]


def test_the_conversation_can_be_downloaded(opened: Page, service: FakeService) -> None:
    service.answers = [three_sentences()]
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
    service.answers = [three_sentences()]
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
    service.answers = [three_sentences()]
    ask(opened, "Вопрос")
    button = opened.get_by_role("button", name="Да", exact=True)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert service.wait_for_call("/feedback") == [{"turn_id": "turn-s", "thumb": "up"}]
