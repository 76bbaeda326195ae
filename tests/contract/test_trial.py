"""A document on trial is found exactly as after it is stored, on every engine, and customers do not see it."""

from collections.abc import Mapping

import pytest

from components.ingest.document import SourceDocument
from components.language.encoder import encode_query
from components.language.encoder_settings import STANDARD
from components.retrieve.retriever import haystack_filters, to_conditions
from components.turn import Filters
from pipelines.ingest.usecase import Ingest
from tenants.core import context
from tenants.core.context import Tenant
from tenants.core.errors import InternalFault, Invalid, NotFound
from tenants.core.points import Conditions, Hit, Point, Vector
from tenants.index import DENSE, Collection, open_collection
from tenants.knowledge import documents, lexicon, trial_document
from tenants.knowledge.trial_document import TrialDocument, WrittenChunks
from tests.contract.test_dense import named

SHELF = (
    SourceDocument("returns", "Возврат", "# Возврат\n\nТовар можно вернуть в течение 14 дней с чеком.\n"),
    SourceDocument("delivery", "Доставка", "# Доставка\n\nКурьер привозит заказ за два дня.\n\n## Цена\n\n490 ₽.\n"),
    SourceDocument("warranty", "Гарантия", "# Гарантия\n\nГарантия на барабан пять лет, чек сохраните.\n"),
)
ARTICLE = SourceDocument(
    "article", "Рассрочка", "# Рассрочка\n\nТовар можно купить в рассрочку на 12 месяцев.\n\n## Банк\n\nБез банка.\n"
)
REVISED = SourceDocument("article", "Рассрочка", "# Рассрочка\n\nРассрочка на заказ до шести месяцев, чек не нужен.\n")
QUESTIONS = ("Можно ли купить в рассрочку?", "Вернуть товар с чеком", "Сколько стоит доставка заказа?", "попугай")


@pytest.fixture(scope="module")
def ingest() -> Ingest:
    return Ingest()


def searched(
    collection: Collection, question: str, conditions: Conditions | None = None
) -> dict[str, list[tuple[float, str]]]:
    """Search; return the hits with scores, equal ones in any order."""
    hits = collection.search({"text-sparse": encode_query(question, STANDARD)}, limit=5, conditions=conditions)
    return {name: sorted((round(hit.score, 3), hit.id) for hit in found) for name, found in hits.items()}


def everything() -> Mapping[str, dict[str, list[tuple[float, str]]]]:
    active = to_conditions(haystack_filters(Filters(statuses=("active",))))
    results = {question: searched(open_collection(), question) for question in QUESTIONS}
    return results | {"conditions": searched(open_collection(), QUESTIONS[0], active)}


def terms() -> tuple[int, dict[str, int], dict[str, int]]:
    counted = lexicon.current()
    return counted.chunks, dict(counted.stems), dict(counted.words)


def test_a_new_article_is_found_on_trial_as_it_is_once_published(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run(SHELF)
    before, terms_before = everything(), terms()
    with trial_document.including(ingest.trial(ARTICLE)):
        on_trial_hits, on_trial_terms = everything(), terms()
        record = documents.get("article")
        ids = [hit.id for hit in open_collection().scan()]
        assert record is not None
        assert set(record.chunk_ids) <= set(ids)
        assert len(ids) == open_collection().count()
        fetched = open_collection().fetch(ids)
        assert [hit.id for hit in fetched] == ids
    assert (everything(), terms(), documents.get("article")) == (before, terms_before, None)
    ingest.publish(ARTICLE)
    assert (on_trial_hits, on_trial_terms) == (everything(), terms())
    assert on_trial_hits != before
    stored = {hit.id: hit.payload for hit in open_collection().fetch(ids)}
    assert {hit.id: hit.payload for hit in fetched} == stored


def test_a_new_version_stands_in_for_the_one_in_force(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run(SHELF)
    ingest.publish(ARTICLE)
    with trial_document.including(ingest.trial(REVISED)):
        hits = {hit.payload["content"] for hit in open_collection().scan()}
        found, counted = everything(), terms()
        assert not any("Без банка" in str(content) for content in hits)
    ingest.publish(REVISED)
    assert counted == terms()
    # Until it is compacted, the embedded engine counts chunks that are gone.
    for question, by_name in everything().items():
        for name, stored in by_name.items():
            assert {hit[1] for hit in stored} == {hit[1] for hit in found[question][name]}


def test_the_first_article_of_a_tenant_can_be_tried(tenant: Tenant, ingest: Ingest) -> None:
    document = ingest.trial(ARTICLE)
    with trial_document.including(document):
        found = everything()
        assert found[QUESTIONS[0]]["text-sparse"]
    assert open_collection().count() == 0
    ingest.publish(ARTICLE)
    assert everything() == found


def test_another_tenant_and_writers_see_nothing_of_it(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run(SHELF)
    with trial_document.including(ingest.trial(ARTICLE)):
        with pytest.raises(InternalFault, match="index_on_trial"):
            open_collection().delete(["x"])
        assert open_collection(create=True).count() == len(documents.all()) == len(SHELF)
        with context.acting_as(Tenant("nobody", "anna")), pytest.raises(NotFound):
            open_collection()


def test_a_withdrawn_article_is_gone(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run(SHELF)
    before = terms()
    ingest.publish(ARTICLE)
    ingest.withdraw("article")
    assert (documents.get("article"), terms()) == (None, before)
    with pytest.raises(NotFound, match="document_unknown"):
        ingest.withdraw("article")


def test_dense_vectors_of_a_document_on_trial_are_compared_too(tenant: Tenant) -> None:
    def point(number: int, dense: tuple[float, float]) -> Point:
        vectors: dict[str, Vector] = {DENSE: dense, "text-sparse": {number: 2.0}}
        return Point(named(number), vectors, {"content": str(number), "meta": {"doc_id": f"d{number}"}})

    collection = open_collection(create=True, encoder="dense", dimensions=2)
    collection.upsert([point(1, (1.0, 0.0)), point(2, (0.0, 1.0))])
    record = documents.DocumentRecord("d3", "Три", "", "h", (named(3),), "2026-01-01")
    document = TrialDocument(
        tenant.tenant_id, record, WrittenChunks([point(3, (2.0, 2.0))]), encoder="dense", dimensions=2
    )
    with trial_document.including(document):
        tried = open_collection().search({DENSE: (1.0, 0.2), "text-sparse": {3: 1.0}}, limit=9)
        [fetched] = open_collection().fetch([named(3)], dense=True)
    collection.upsert([point(3, (2.0, 2.0))])
    stored = collection.search({DENSE: (1.0, 0.2), "text-sparse": {3: 1.0}}, limit=9)
    assert contents(tried) == contents(stored)
    assert fetched.dense == pytest.approx([0.5**0.5, 0.5**0.5])


def contents(hits: Mapping[str, list[Hit]]) -> dict[str, list[tuple[object, float]]]:
    return {name: [(hit.payload["content"], round(hit.score, 4)) for hit in found] for name, found in hits.items()}


def test_what_would_be_refused_is_refused_on_trial(tenant: Tenant, ingest: Ingest) -> None:
    for refused in (SourceDocument("a", "", "  "), SourceDocument("a", "x", "y", meta={"trust": "holy"})):
        with pytest.raises(Invalid):
            ingest.trial(refused)
        with pytest.raises(Invalid):
            ingest.publish(refused)
    assert documents.all() == ()
    assert ingest.trial(ARTICLE).record.title == "Рассрочка"
