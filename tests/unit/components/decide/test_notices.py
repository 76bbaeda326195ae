"""Notices beside an answer, in both languages, with their citations."""

from dataclasses import replace

import pytest

from components.decide.notices import rejections, source_notices, with_context_citations
from components.language.texts import LOCALES
from components.turn import (
    Citation,
    Claim,
    Conflict,
    DocumentStatus,
    Draft,
    Passage,
    RejectedApproach,
    Related,
    Statement,
    Turn,
)
from tests.turns import passage, turn

NEW = replace(
    passage("Вернуть можно за 30 дней. Чек не нужен.", "new", doc_id="new.md", title="Новые правила"),
    updated_at="2026-02-01",
)
OLD = replace(
    passage("Вернуть можно за 14 дней.", "old", doc_id="old.md", title="Старые правила"), updated_at="2024-01-10"
)
CONFLICT = Conflict("number", Statement(NEW, (0, 25)), Statement(OLD, (0, len(OLD.text))))
RESET = RejectedApproach("r", "Сбросить плату кнопкой питания", "стирается калибровка.", "2025-05-05")


def quoting(source: Passage, *spans: tuple[int, int]) -> Draft:
    cited = tuple(
        Citation(index, source, source.text[slice(*span)], span) for index, span in enumerate(spans or [(0, 25)], 1)
    )
    return Draft("Вернуть можно. [1]", tuple(Claim(one.excerpt, (one.index,)) for one in cited), cited)


def beside(**evidence: object) -> Turn:
    base_turn = turn("За сколько дней можно вернуть?", NEW, OLD)
    return replace(base_turn, evidence=replace(base_turn.evidence, **evidence))  # type: ignore[arg-type]


@pytest.mark.parametrize("locale", LOCALES)
def test_a_conflict_names_both_documents_and_both_dates(locale: str) -> None:
    given_turn = replace(beside(conflicts=(CONFLICT,)), locale=locale)
    draft = with_context_citations(quoting(NEW), given_turn)
    assert [(one.index, one.passage.doc_id, one.origin) for one in draft.citations] == [
        (1, "new.md", "primary"),
        (2, "old.md", "conflicting"),
    ]
    assert draft.citations[1].excerpt == OLD.text
    (notice,) = source_notices(draft, given_turn)
    dates = ("01.02.2026", "10.01.2024") if locale == "ru" else ("1 February 2026", "10 January 2024")
    for part in (*dates, NEW.title, OLD.title, OLD.text, "[2]"):
        assert part in notice


def test_a_conflict_between_sentences_that_are_not_stated_is_not_mentioned() -> None:
    given_turn = beside(conflicts=(CONFLICT,))
    draft = quoting(NEW, (26, len(NEW.text)))
    assert with_context_citations(draft, given_turn) == draft
    assert list(source_notices(draft, given_turn)) == []


@pytest.mark.parametrize("status", ["superseded", "deprecated", "archived"])
@pytest.mark.parametrize("locale", LOCALES)
def test_an_outdated_source_is_announced(status: DocumentStatus, locale: str) -> None:
    given_turn = replace(beside(), locale=locale)
    (notice,) = source_notices(quoting(replace(OLD, status=status)), given_turn)
    assert OLD.title in notice
    assert "2024" in notice


def test_an_outdated_source_names_its_successor() -> None:
    related = Related(NEW, "supersedes", 1.0, "new.md", "old.md")
    (notice,) = source_notices(quoting(replace(OLD, status="superseded")), beside(related=(related,)))
    assert "«Новые правила» от 01.02.2026" in notice


def test_a_rejected_approach_is_announced_when_omitted_or_asked_about() -> None:
    given_turn = beside(rejected=(RESET,))
    expected = "Способ «Сбросить плату кнопкой питания» отклонён 05.05.2025. Причина: стирается калибровка."
    assert list(rejections(quoting(NEW), given_turn)) == []
    assert list(rejections(replace(quoting(NEW), withheld=(RESET,)), given_turn)) == [expected]
    asking_turn = replace(given_turn, question="Можно ли сбросить плату кнопкой питания?")
    assert list(rejections(replace(quoting(NEW), withheld=(RESET,)), asking_turn)) == [expected]
    plain = replace(RESET, reason="")
    (notice,) = rejections(replace(quoting(NEW), withheld=(plain,)), given_turn)
    assert notice.endswith("пользоваться им не следует.")
