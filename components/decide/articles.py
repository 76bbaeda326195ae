"""Articles to read when there is no answer: the sections nearest to the question, presented as such."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from math import log

from haystack import Document

from components.decide.snippets import snippet
from components.judge.relevance import COSINE
from components.judge.terms import read_query
from components.language.normalise import fold
from components.passages import SEARCH, relevance, to_passage
from components.turn import Article, Passage, Query, Turn
from tenants.index import DENSE, SPARSE

_CREDIT = 0.5
"""Weight of another reading of the message: a customer changes the subject about as often as not."""

ARTICLES = 3
ARTICLES_IN_DOUBT = 8
"""Number of articles if the first one probably answers, and if not. For 487 everyday questions to the demo shops, none
answered surely enough to be quoted, the right section is among six for 87 in 100, among eight for 89."""

_BY_MEANING = 0.65
"""Weight of the dense vector in the order of the articles after the likeliest ones. For 259 English questions of those,
the right section is among eight for 89 in 100, by the score of the search for 86; for the Russian ones both find 90."""

_MEANING = 2.0
"""Added to the log-odds of the section nearest by meaning, to others in proportion. Of 220 everyday questions to the
demo shops, the right section comes first for 60 in 100 and among three for 77, by probability alone for 56 and 74."""

_LEAST = 1e-9
"""Least probability of an article."""

_LEADS_FROM, _LEAD = 0.2, 4.0
"""Least probability of a section that leads, and how many times as probable as any other it has to be. Of 800 everyday
messages to the demo shops, 23 had such a section and no answer sure enough to quote; it answered 22 of them."""


def leads(turn: Turn) -> bool:
    """Return whether the likeliest section is far more probable than any other."""
    first, second = sorted((0.0, 0.0, *turn.evidence.relevance_by_chunk.values()))[:-3:-1]
    return first >= max(_LEADS_FROM, _LEAD * second)


def goes_elsewhere(turn: Turn, beside: Sequence[Document]) -> bool:
    """Return whether the likeliest section of all is for another reading of the message than the query."""
    judged = turn.evidence.relevance_by_chunk
    own = max(judged, key=lambda chunk_id: judged[chunk_id], default="")
    other = max(beside, key=relevance, default=None)
    return other is not None and to_passage(other).chunk_id != own and relevance(other) > judged.get(own, 0.0)


def nearest(
    turn: Turn, min_probability: float, max_articles: int = ARTICLES, beside: Sequence[Document] = ()
) -> tuple[Article, ...]:
    """Return the sections most likely to answer, each title with the same heading once.

    The most promising ones for the query come first, as many as `ARTICLES`, then the others by how near they are. Two
    views find more: of 344 everyday questions to the demo shops without an answer sure enough to quote, the right
    section is among six for 90 in 100, by the probabilities alone for 86.

    If the query was completed from the conversation, the best section by each other reading comes after the likeliest
    one. If the likeliest section of all is for another reading, the sections of both alternate.

    None if the question names codes that the evidence lacks: a section near E20 is not near E21. If a model has found
    no answer, only the sections that it would send the customer to.

    :param min_probability: minimum probability, as judged, that a section answers the question.
    :param max_articles: sections returned at most.
    :param beside: sections for other readings of the question, with their relevance.
    """
    evidence = turn.evidence
    if turn.query.codes and set(turn.query.codes) <= set(evidence.uncovered):
        return ()
    judged = {passage.chunk_id: evidence.relevance_by_chunk.get(passage.chunk_id, 0.0) for passage in evidence.passages}
    found = {passage.chunk_id: _nearness(passage) for passage in evidence.passages}
    passages = {passage.chunk_id: passage for passage in evidence.passages}
    likeliest = sorted(passages, key=lambda chunk_id: -_promise(passages[chunk_id], judged[chunk_id]))[:ARTICLES]
    others = [to_passage(document).chunk_id for document in beside]
    if goes_elsewhere(turn, beside):
        alternating = zip_longest(others[:ARTICLES], likeliest)
        first = [chunk_id for pair in alternating for chunk_id in pair if chunk_id is not None]
    else:
        leading = [to_passage(document).chunk_id for document in beside if document.meta.get("leads")]
        first = [*likeliest[:1], *(leading if turn.standalone_question else ()), *likeliest[1:]]
    for document in beside:
        passage = to_passage(document)
        passages.setdefault(passage.chunk_id, passage)
        for scores, score in ((judged, relevance(document)), (found, _nearness(passage))):
            scores[passage.chunk_id] = max(_CREDIT * score, scores.get(passage.chunk_id, 0.0))
    ranked = dict.fromkeys((*first, *sorted(passages, key=lambda chunk_id: -found[chunk_id])))
    least = max(min_probability, _LEAST)
    candidates = [passages[chunk_id] for chunk_id in ranked if judged[chunk_id] >= least]
    if turn.draft is not None and turn.draft.to_read is not None:
        chosen = [passages[chunk_id] for chunk_id in turn.draft.to_read if chunk_id in passages]
        candidates = chosen or (candidates if turn.draft.to_read else [])
    query = read_query(turn.query.search)
    articles: dict[tuple[str, str], Article] = {}
    for passage in candidates:
        offered = article(passage, query, turn, judged[passage.chunk_id])
        articles.setdefault((fold(passage.title) or passage.doc_id, fold(offered.passage.heading)), offered)
    return tuple(articles.values())[:max_articles]


def _promise(passage: Passage, probability: float) -> float:
    """Return the log-odds that a passage answers, higher if it is near by meaning.

    Customers seldom use the words of an article, which the probability counts.
    """
    odds = max(probability, _LEAST) / max(1 - probability, _LEAST)
    return log(odds) + _MEANING * passage.scores.get(DENSE, 0.0)


def _nearness(passage: Passage) -> float:
    """Return how near a passage is to the text that found it: by words and meaning, or as the search says."""
    scores = passage.scores
    if COSINE not in scores:
        return scores.get(SEARCH, 0.0)
    return _BY_MEANING * scores.get(DENSE, 0.0) + (1 - _BY_MEANING) * scores.get(SPARSE, 0.0)


def article(passage: Passage, query: Query, turn: Turn, score: float) -> Article:
    """Return a passage as an article to read, under the heading of the section that its snippet is from."""
    nearest_lines = snippet(passage, query, turn)
    return Article(replace(passage, heading=nearest_lines.heading), nearest_lines.text, score)
