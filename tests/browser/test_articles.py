"""Articles near a question that open, and cards on the sources of an answer that is being written."""

from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ask
from tests.browser.fake_service import SITE, FakeService
from tests.browser.turns import PASSAGE, Json, citation, turn

SECTION = "Исправный товар можно вернуть в течение 14 дней. Сохраните чек и упаковку."
SNIPPET = "Код E20 означает, что вода не сливается."


def _article(title: str, url: str | None) -> Json:
    return {
        "doc_id": title,
        "title": title,
        "heading": "Сроки",
        "url": url,
        "snippet": "Исправный товар можно вернуть в течение 14 дней.",
        "score": 0.4,
        "text": SECTION,
    }


def test_other_sections_of_an_article_are_one_click_away(opened: Page, service: FakeService) -> None:
    page_of = f"/help/{SITE}/returns.md"
    listed = [{"heading": heading, "url": f"{page_of}#{heading.casefold()}"} for heading in ("Условия", "Деньги")]
    service.answers = [turn("refused", "Не нашёл.", articles=[_article("Возврат", page_of) | {"sections": listed}])]
    ask(opened, "Вопрос")
    links = opened.locator(".articles .sections").get_by_role("link")
    expect(links).to_have_text(["Условия", "Деньги"])
    expect(links.first).to_be_visible()
    assert unquote(links.last.get_attribute("href") or "") == f"{service.url}{page_of}#деньги"


def test_an_article_cited_twice_is_linked_once(opened: Page, service: FakeService) -> None:
    page_of = f"/help/{SITE}/errors.md"
    cited = [citation(index, "Коды ошибок", SNIPPET, PASSAGE, url=f"{page_of}#e{index}0") for index in (1, 2)]
    citations = [one | {"doc_id": "errors.md"} for one, _ in cited]
    sources = [source for _, source in cited]
    service.answers = [turn("answered", "Одно [1]. Другое [2].", citations=citations, sources=sources)]
    ask(opened, "Чем E10 отличается от E20?")
    expect(opened.locator(".related p")).to_have_text(["Подробнее"])  # not «Смотрите также»: it was just cited
    expect(opened.locator(".related a")).to_have_text(["Коды ошибок"])
    expect(opened.locator(".related a")).to_have_attribute("href", f"{service.url}{page_of}#e10")


@pytest.mark.parametrize("outcome", ["refused", "partially_answered"])
def test_nearest_articles_open_on_their_page_or_in_place(opened: Page, service: FakeService, outcome: str) -> None:
    page_of = f"/help/{SITE}/returns.md#%D1%81%D1%80%D0%BE%D0%BA%D0%B8"
    service.answers = [turn(outcome, "Есть не всё.", articles=[_article("Возврат", page_of), _article("Обмен", None)])]
    ask(opened, "Вопрос")
    link = opened.locator(".articles a")
    expect(link).to_have_text("Возврат")
    expect(link).to_have_attribute("href", service.url + page_of)
    expect(link).to_have_attribute("target", "_blank")
    opened.get_by_role("button", name="Обмен").click()
    expect(opened.locator(".passage .quote")).to_have_text(SECTION)
    opened.keyboard.press("Escape")
    expect(opened.locator(".passage")).to_be_hidden()
    link.hover()
    expect(opened.locator(".card")).to_contain_text("Сохраните чек и упаковку")


def test_sources_have_cards_while_the_answer_is_written(opened: Page, service: FakeService) -> None:
    ask(opened, "Вопрос")
    service.wait_for("customer")
    snippet = f"### Слив\n{SNIPPET}"
    early = {"index": 1, "title": "Коды ошибок", "heading": "E20", "snippet": snippet, "url": None, "score": 0.9}
    events: list[tuple[str, Json]] = [
        ("accepted", {}),
        ("sources-early", {"citations": [early], "provisional": True}),
        ("token", {"text": "Вода не сливается [1].", "provisional": False}),
    ]
    for name, data in events:
        service.push(name, {**data, "turn_id": "turn-s"})
    number, card = opened.locator(".live .cite"), opened.locator(".card")
    number.hover()
    expect(card.locator(".words")).to_have_text(f"Слив {SNIPPET}")
    expect(number).to_have_attribute("aria-describedby", "opora-card")
    service.push("token", {"text": " Очистите фильтр.", "provisional": False, "turn_id": "turn-s"})
    expect(opened.locator(".live .text")).to_contain_text("Очистите фильтр")
    expect(card).to_be_visible()
    opened.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(opened.locator(".panel")).to_be_visible()
    # By keyboard, too.
    opened.locator(".live summary").focus()
    opened.keyboard.press("Enter")
    opened.keyboard.press("Tab")
    expect(opened.locator(".live .source")).to_be_focused()
    expect(card).to_contain_text(SNIPPET)
    service.push("retract", {"what": "sources", "turn_id": "turn-s"})
    expect(opened.locator(".live .source")).to_have_count(0)
    expect(card).to_be_hidden()
