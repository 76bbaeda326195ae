"""Articles are found as well when they come as Word, PDF or web pages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from components.ingest import formats
from components.ingest.document import SourceDocument
from evaluation import workspace
from evaluation.asking import ask_all
from evaluation.benchmarks.rendering import RENDERERS
from evaluation.cases import Case, Corpus
from evaluation.datasets.public import vkcloud
from evaluation.datasets.rows import DATA, MissingData
from pipelines.ask.usecase import Ask
from tenants.core.context import acting_as

QUESTIONS = 10
OTHERS = 10
WITHIN = 0.03


@pytest.mark.usefixtures("installation")
def test_every_format_is_found_as_well_as_its_markdown() -> None:
    try:
        (chosen,) = vkcloud(DATA, "ru")
        articles = {article.doc_id: article for article in chosen.corpus.documents()}
    except MissingData as absent:
        pytest.skip(f"{absent.path} is not here")
    linked = [case for case in chosen.cases if case.gold_docs]
    # Those about the shortest articles, because writing files takes longer than reading them.
    cases = sorted(linked, key=lambda case: sum(len(articles[doc_id].text) for doc_id in case.gold_docs))[:QUESTIONS]
    wanted = [doc_id for case in cases for doc_id in case.gold_docs]
    others = sorted(articles, key=lambda doc_id: len(articles[doc_id].text))[len(articles) // 2 :][:OTHERS]
    sample = [articles[doc_id] for doc_id in dict.fromkeys([*wanted, *others])]
    as_markdown = _hits("sample-md", sample, cases)
    assert as_markdown > 0.5
    hits = {ending: _hits(f"sample-{ending}", list(_reread(sample, ending)), cases) for ending in RENDERERS}
    assert {ending for ending, hit in hits.items() if hit < as_markdown - WITHIN} == set()


def _reread(articles: Sequence[SourceDocument], ending: str) -> Iterator[SourceDocument]:
    """Read the articles from files of this format; only their ids come from the originals."""
    for article in articles:
        parsed = formats.read(f"article.{ending}", RENDERERS[ending](article))
        yield replace(article, title=parsed.title, text=parsed.text, markup=parsed.markup, meta={})


def _hits(name: str, articles: Sequence[SourceDocument], cases: Sequence[Case]) -> float:
    """Return the share of questions with their article among the first five."""
    tenant = workspace.tenant_for(Corpus(name, cases[0].locale, partial(iter, articles)), lambda *_: None)
    with acting_as(tenant):
        records = ask_all(Ask(), cases, 1, lambda *_: None)
    return sum(not set(record.case.gold_docs).isdisjoint(record.ranked[:5]) for record in records) / len(records)
