"""Articles are found as well when they come as Word, PDF or web pages; the bench does the same with all of them."""

import pytest

from evaluation.bench_formats import MARKDOWN, measure
from evaluation.datasets import vkcloud
from evaluation.rendering import RENDERERS
from evaluation.rows import DATA, Absent

QUESTIONS = 10
OTHERS = 10
WITHIN = 0.03


@pytest.mark.usefixtures("installation")
def test_every_format_is_found_as_well_as_its_markdown() -> None:
    try:
        (chosen,) = vkcloud(DATA, "ru")
        articles = {article.doc_id: article for article in chosen.corpus.documents()}
    except Absent as absent:
        pytest.skip(f"{absent.path} is not here")
    linked = [case for case in chosen.cases if case.gold_docs]
    # Those about the shortest articles, because writing files takes longer than reading them.
    cases = sorted(linked, key=lambda case: sum(len(articles[doc_id].text) for doc_id in case.gold_docs))[:QUESTIONS]
    wanted = [doc_id for case in cases for doc_id in case.gold_docs]
    others = sorted(articles, key=lambda doc_id: len(articles[doc_id].text))[len(articles) // 2 :][:OTHERS]
    sample = [articles[doc_id] for doc_id in dict.fromkeys([*wanted, *others])]
    measured = measure("sample", sample, cases, lambda done, total: None)
    assert measured.keys() == {MARKDOWN, *RENDERERS}
    assert measured[MARKDOWN].hit_at_5 > 0.5
    assert {name for name, one in measured.items() if one.hit_at_5 < measured[MARKDOWN].hit_at_5 - WITHIN} == set()
