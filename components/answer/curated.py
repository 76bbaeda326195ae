"""Answers whose wording a tenant has approved."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_answer, with_claims
from components.answer.extractive import quoted
from components.embed.dense import EmbeddingFailed, cosine, embed_question
from components.judge.approaches import negated
from components.language.captions import innermost
from components.language.encoder_settings import settings_from
from components.language.identifiers import codes, numbers
from components.language.marks import HEADING_MARK
from components.language.words import stems
from components.passages import to_passage, with_meta
from components.turn import Draft, Passage
from components.understand.followup import named
from tenants.index import open_collection

_Spans = list[tuple[int, int]]


@component
class CuratedAnswers:
    """Answer a question that a curated document asks in a heading, word for word and before anything is generated.

    Documents with the trust `curated` contain approved wordings: a section of such a document is shown whole if its
    heading, or the title above it, asks the same as the query. They ask the same if both have the same content words,
    or if the query has several content words, the section names everything that the query names, and their cosine is at
    least `min_cosine`. Codes, numbers and negations must be the same in any case. The most similar section is shown.

    :param min_cosine: minimum cosine of query and heading; without an encoder, only the words count. With e5-small and
        a fully curated knowledge base, 0.9 matched no wrong section for 222 customers' questions; 0.88 did for two.

    ```python
    CuratedAnswers().run(query="How long is the warranty?", documents=documents)
    ```
    """

    def __init__(self, min_cosine: float = 0.9) -> None:
        self.min_cosine = min_cosine

    @component.output_types(answers=list[GeneratedAnswer], documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        """Return `answers`, one curated answer, or else the `documents` unchanged.

        :param documents: whole sections, best first.
        """
        best = self.min_cosine
        answer: GeneratedAnswer | None = None
        for document in documents:
            passage = to_passage(document)
            if passage.trust != "curated" or passage.status != "active":
                continue
            for heading, spans in _sections(passage):
                if spans and (likeness := _likeness(query, heading, passage, spans)) >= best:
                    best, answer = likeness, _answer(query, document, passage, spans)
        return {"answers": [answer]} if answer else {"documents": documents}


def _likeness(query: str, heading: str, passage: Passage, spans: _Spans) -> float:
    """Return how alike the query and a heading are, 0..1; 1 if they have the same words."""
    asked = set(stems(query))
    if any(set(read(query)) != set(read(heading)) for read in (codes, numbers)) or negated(query) != negated(heading):
        return 0.0
    if asked and asked == set(stems(heading)):
        return 1.0
    said = stems(f"{passage.title}\n{passage.heading}\n{heading}\n{passage.text[spans[0][0] : spans[-1][1]]}")
    about = named(query)
    return _cosine(query, heading) if len(asked) > 1 and about and about <= set(said) else 0.0


def _sections(passage: Passage) -> Iterator[tuple[str, _Spans]]:
    """Yield each heading of a passage with the sentences below it; small sections share a passage."""
    heading = innermost(passage.heading) or passage.title
    spans: _Spans = []
    for span in passage.sentences:
        sentence = passage.text[slice(*span)]
        if match := HEADING_MARK.match(sentence):
            yield heading, spans
            heading, spans = sentence[match.end() :].strip(), []
        else:
            spans.append(span)
    yield heading, spans


def _cosine(text: str, other: str) -> float:
    """Return the cosine of two questions; 0 for an index without vectors."""
    dense = settings_from(open_collection().encoder).dense
    if dense is None:
        return 0.0
    try:
        return cosine(embed_question(text, dense), embed_question(other, dense))
    except EmbeddingFailed:
        return 0.0


def _answer(query: str, document: Document, passage: Passage, spans: _Spans) -> GeneratedAnswer:
    claims = [replace(claim, status="supported", quote=claim.text) for claim in quoted(passage, spans)]
    draft = Draft(
        "",
        (),
        (),
        quoted=True,
        factuality_status="checked",
        quality=100,
        relevance=1.0,
        confidence=1.0,
        answerability="fully",
        truncated=passage.is_cut,
    )
    source = with_meta(document, graded=True, relevance=1.0)
    return to_answer(with_claims(draft, claims, {1: passage}), query, [source])
