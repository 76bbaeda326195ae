"""The ask pipeline with related documents: replacements, dependencies, rejected approaches."""

from collections.abc import Iterator, Sequence

import pytest
from haystack.tracing.tracer import disable_tracing

from components.ingest.document import SourceDocument
from components.turn import DocumentStatus, Filters, Turn
from pipelines.ask.answering import answer_of
from pipelines.ask.engine import AskEngine
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.json import Json
from tenants.knowledge import document_edges, rejected
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.rejected import Rejected

QUESTION = "Как вернуть посуду?"


def document(doc_id: str, title: str, text: str, **meta: Json) -> SourceDocument:
    return SourceDocument(doc_id, title, text, meta={"updated_at": "2024-01-10", **meta})


OLD = document("old.md", "Вернуть посуду", "Посуду можно вернуть в течение 14 дней. Сохраните чек.")
NEW = document(
    "new.md",
    "Вернуть посуду по-новому",
    "Вернуть можно в течение 30 дней любую посуду, если она без сколов. Чек не нужен.",
    updated_at="2026-02-01",
)
PACKING = document("packing.md", "Упаковка хрупкого", "Стаканы заверните в бумагу и положите в коробку.")
BOARD = document(
    "board.md",
    "Сброс платы управления",
    "Чтобы сбросить плату управления, удерживайте кнопку питания 10 секунд. "
    "Чтобы сбросить плату управления, отключите машину от сети на 5 минут.",
)
BUTTON = "Сбросить плату кнопкой питания"
FILLERS = [
    document(f"filler-{number}.md", text.split()[0], text)
    for number, text in enumerate(
        (
            "Доставка работает каждый день с девяти до шести.",
            "Оплата принимается картой и по счёту.",
            "Скидка действует для постоянных покупателей.",
            "Склад находится на улице Садовой.",
            "Вакансии открыты для курьеров и кладовщиков.",
            "Пароль меняется в личном кабинете, в разделе настроек.",
            "Подписка на новости отключается ссылкой в письме.",
            "Подарочные карты продаются на кассе.",
        )
    )
]
"""Further topics of the knowledge base, so that the words of a question are comparatively rare."""


@pytest.fixture(scope="module")
def engine() -> Iterator[AskEngine]:
    ask_engine = AskEngine()
    ask_engine.warm_up()
    yield ask_engine
    ask_engine.close()
    disable_tracing()


@pytest.fixture
def shelf(shared_installation: None, request: pytest.FixtureRequest) -> Iterator[Tenant]:
    """A separate tenant without documents, in context."""
    name = f"shelf-{abs(hash(request.node.nodeid))}"
    Registry().add(name)
    with acting_as(Tenant(name, "anna", SCOPES)) as tenant:
        yield tenant


def ingest(*documents: SourceDocument) -> None:
    assert not Ingest().run([*FILLERS, *documents]).errors


def ask(engine: AskEngine, question: str = QUESTION, filters: Filters = Filters()) -> Turn:  # noqa: B008 - frozen
    return engine.run(Turn("t", question, filters=filters))


def cited(turn: Turn, origin: str = "primary") -> list[str]:
    assert turn.draft is not None, turn.outcome
    return [citation.passage.doc_id for citation in turn.draft.citations if citation.origin == origin]


def declaring(base: SourceDocument, **meta: Json) -> SourceDocument:
    return document(base.doc_id, base.title, base.text, **{**base.meta, **meta})


def ranks(turn: Turn) -> Sequence[str]:
    result = (passage.doc_id for passage in turn.evidence.passages)
    return [doc_id for doc_id in result if not doc_id.startswith("filler")]


def test_a_superseded_document_ranks_under_its_successor(engine: AskEngine, shelf: Tenant) -> None:
    ingest(OLD, NEW)
    assert ranks(ask(engine))[0] == "old.md"
    document_edges.put(Edge("new.md", "supersedes", "old.md"))
    turn = ask(engine)
    assert ranks(turn) == ["new.md", "old.md"]
    assert {passage.status for passage in turn.evidence.passages if passage.doc_id == "old.md"} == {"superseded"}
    assert cited(turn)[0] == "new.md"


def test_a_declared_replacement_applies_unless_an_operator_objects(engine: AskEngine, shelf: Tenant) -> None:
    ingest(OLD, declaring(NEW, supersedes="old.md"))
    assert ranks(ask(engine)) == ["new.md", "old.md"]
    document_edges.put(Edge("new.md", "supersedes", "old.md", 0.0))
    assert ranks(ask(engine))[0] == "old.md"


def test_a_status_set_by_an_operator_lowers_rank_and_can_be_filtered(engine: AskEngine, shelf: Tenant) -> None:
    status: DocumentStatus = "deprecated"
    ingest(OLD, NEW)
    library = Library(Ingest().rewrite)
    assert ranks(ask(engine))[0] == "old.md"
    library.change("old.md", {"status": status})
    assert ranks(ask(engine)) == ["new.md", "old.md"]
    assert ranks(ask(engine, filters=Filters(statuses=("active",)))) == ["new.md"]
    result = ask(engine, filters=Filters(statuses=(status,)))
    assert ranks(result) == cited(result) == ["old.md"]
    assert ranks(ask(engine, filters=Filters(statuses=()))) == []
    library.change("old.md", {"status": None})
    assert ranks(ask(engine))[0] == "old.md"


def test_related_passages_reach_the_answering_step_and_are_not_quoted(engine: AskEngine, shelf: Tenant) -> None:
    ingest(OLD, PACKING)
    document_edges.put(Edge("packing.md", "related_to", "old.md", 0.5))
    turn = ask(engine)
    (related,) = turn.evidence.related
    assert (related.passage.doc_id, related.kind, related.weight) == ("packing.md", "related_to", 0.5)
    assert set(cited(turn)) == {"old.md"}
    assert cited(turn, "related") == ["packing.md"]
    assert "бумагу" not in turn.reply.text
    answer = answer_of(turn)
    assert [(citation.doc_id, citation.origin, citation.cited) for citation in answer.citations] == [
        ("old.md", "primary", True),
        ("packing.md", "related", False),
    ]
    assert [item.doc_id for item in answer.meta.beside.related] == ["packing.md"]
    assert answer.meta.chunks.used == 1


def test_an_archived_document_is_related_to_nothing_and_filters_hold(engine: AskEngine, shelf: Tenant) -> None:
    ingest(OLD, declaring(PACKING, status="archived"), NEW)
    document_edges.put(Edge("packing.md", "related_to", "old.md"))
    document_edges.put(Edge("new.md", "related_to", "old.md"))
    turn = ask(engine, filters=Filters(doc_ids=("old.md", "packing.md")))
    assert turn.evidence.related == ()


def test_edges_are_followed_one_hop_weightiest_first(engine: AskEngine, shelf: Tenant) -> None:
    numbers = range(25)
    ingest(OLD, *(document(f"far-{n}.md", f"Далёкое {n}", f"Совсем другое, номер {n}.") for n in numbers))
    for n in numbers:
        document_edges.put(Edge("old.md", "depends_on", f"far-{n}.md", (n + 1) / 100))
    document_edges.put(Edge("far-24.md", "depends_on", "far-0.md", 1.0))
    results = [related.passage.doc_id for related in ask(engine).evidence.related]
    assert results == [f"far-{n}.md" for n in reversed(range(5, 25))]


def test_a_rejected_approach_is_withheld_with_its_reason(engine: AskEngine, shelf: Tenant) -> None:
    ingest(BOARD)
    question = "Как сбросить плату управления?"
    assert "кнопку питания" in ask(engine, question).reply.text
    rejected.put(Rejected(BUTTON, "стирается калибровка", "2025-05-05"))
    turn = ask(engine, question)
    assert turn.evidence.rejected[0].text == BUTTON
    assert "кнопку питания" not in turn.reply.text
    assert "отключите машину от сети" in turn.reply.text
    assert turn.reply.notice == f"Способ «{BUTTON}» отклонён 05.05.2025. Причина: стирается калибровка."


def test_an_answer_about_a_code_quotes_its_section_of_a_short_article(engine: AskEngine, shelf: Tenant) -> None:
    text = (
        "## Ошибка P07\n\nP07 означает, что жернова заклинило.\n\n### Что делать\n\nУберите зёрна из бункера.\n\n"
        "## Как часто чистить жернова\n\nРаз в две недели.\n\n## Гарантия\n\n24 месяца."
    )
    ingest(document("mill.md", "Кофемолка", text))
    turn = ask(engine, "Что означает ошибка P07?")
    assert turn.outcome == "answered"
    assert turn.draft is not None
    assert "Уберите зёрна из бункера." in turn.reply.text
    assert "недели" not in turn.reply.text
    assert "24 месяца" not in turn.reply.text
    assert [citation.passage.heading for citation in turn.draft.citations] == ["Ошибка P07"]
