"""The display of each outcome, and its accessibility."""

import os
import re
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import Browser, Page, expect

from components.turn import Outcome
from tests.browser.conftest import ask, eventually, host_page, last_answer, open_chat, violations
from tests.browser.fake_service import FakeService, shop
from tests.browser.turns import OUTCOMES

GOLDEN = Path(__file__).parent / "golden"
_COMMENTS = re.compile(r"<!--.*?-->", re.DOTALL)
_BETWEEN = re.compile(r">\s+<|\s+")


def test_every_outcome_of_the_pipeline_has_its_own_look() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))


def _dom(page: Page) -> str:
    """Return the elements of the answer, one a line, without the marks of the template library."""
    text = _COMMENTS.sub("", str(last_answer(page).evaluate("answer => answer.outerHTML")))
    text = _BETWEEN.sub(lambda match: "><" if match.group().startswith(">") else " ", text)
    return re.sub(r"(?<=>)(?=<(?!/))", "\n", text) + "\n"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_looks_as_agreed(opened: Page, service: FakeService, outcome: str) -> None:
    service.answers = [OUTCOMES[outcome]()]
    ask(opened, "Вопрос")
    opened.locator(f'[data-outcome="{outcome}"]').wait_for()
    shown, golden = _dom(opened), GOLDEN / f"{outcome}.html"
    if os.environ.get("OPORA_WRITE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    agreed = golden.read_text(encoding="utf-8")
    assert eventually(opened, lambda: _dom(opened), agreed) == agreed
    assert not violations(opened, "'opora-chat'")


@pytest.mark.parametrize("scheme", ["dark", "forced"])
def test_other_colours_and_a_phone_are_readable_too(browser: Browser, service: FakeService, scheme: str) -> None:
    service.answers = [OUTCOMES["answered"](), OUTCOMES["low_confidence"]()]
    with (
        shop(host_page(service)) as address,
        browser.new_context(
            color_scheme="dark",
            forced_colors="active" if scheme == "forced" else "none",
            viewport={"width": 390, "height": 780},
        ) as context,
    ):
        page = context.new_page()
        page.goto(address)
        open_chat(page)
        for outcome in ("answered", "low_confidence"):
            ask(page, "Вопрос")
            page.locator(f'[data-outcome="{outcome}"]').wait_for()
        assert not violations(page, "'opora-chat'")
        box = page.locator(".frame").bounding_box()
        assert box is not None
        assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 390, 780)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_notice_stands_above_the_text(opened: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["low_confidence"]()]
    ask(opened, "Вопрос")
    notice, text = (last_answer(opened).locator(part) for part in (".notice", ".text"))
    above, below = notice.bounding_box(), text.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]


def test_a_number_opens_the_exact_passage_with_the_sentence_marked(opened: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["answered"]()]
    ask(opened, "Ошибка E20")
    number = last_answer(opened).locator(".cite").first
    number.click()
    passage = opened.locator(".passage")
    expect(passage.locator("h3")).to_have_text("Коды ошибок E10–E30")
    expect(passage.locator("mark")).to_have_text("Выключите машину и очистите фильтр сливного насоса.")
    expect(passage.locator(".quote")).to_have_text(re.compile("^Код E20 означает"))
    expect(opened.get_by_role("button", name="Закрыть источник")).to_be_focused()
    inside, panel = passage.bounding_box(), opened.locator(".panel").bounding_box()
    assert inside is not None
    assert panel is not None
    assert inside["x"] >= panel["x"]
    assert inside["x"] + inside["width"] <= panel["x"] + panel["width"]
    assert not violations(opened, "'opora-chat'")
    opened.keyboard.press("Escape")
    expect(passage).to_be_hidden()
    expect(opened.locator(".panel")).to_be_visible()
    expect(number).to_be_focused()


def test_steps_beyond_four_are_folded(opened: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["answered"]()]
    ask(opened, "Ошибка E20")
    folded = last_answer(opened).get_by_text("Закрутите фильтр")
    expect(folded).to_be_attached()
    expect(folded).to_be_hidden()
    last_answer(opened).get_by_text("Ещё шагов: 2").click()
    expect(folded).to_be_visible()
    expect(last_answer(opened).locator("details.steps ol")).to_have_attribute("start", "5")


def test_a_number_behind_the_last_folded_step_can_be_seen(opened: Page, service: FakeService) -> None:
    steps = "1. Раз.\n2. Два.\n3. Три.\n4. Четыре.\n5. Пять.\n6. Закрутите фильтр. [1]"
    written: dict[str, object] = {"text": steps, "notice": None, "verified": True, "missing": []}
    service.answers = [{**OUTCOMES["answered"](), "answer": written}]
    ask(opened, "Ошибка E20")
    numbers = last_answer(opened).locator(".cite:visible")
    expect(numbers).to_have_count(1)
    last_answer(opened).get_by_text("Ещё шагов: 2").click()
    expect(last_answer(opened).get_by_text("Закрутите фильтр")).to_be_visible()
    expect(numbers).to_have_count(1)


def test_a_topic_and_a_follow_up_are_asked_by_a_click(opened: Page, service: FakeService) -> None:
    service.answers = [OUTCOMES["clarify"](), OUTCOMES["answered"](), OUTCOMES["refused"]()]
    ask(opened, "Возврат")
    opened.get_by_role("button", name="Возврат товара с недостатком").click()
    opened.get_by_role("button", name="Где находится фильтр?").click()
    opened.locator('[data-outcome="refused"]').wait_for()
    questions = [body["text"] for body in service.called("/messages")]
    assert questions == ["Возврат", "Возврат товара с недостатком", "Где находится фильтр?"]
    expect(opened.get_by_role("button", name="Возврат товара с недостатком")).to_have_count(0)
