"""Answers of Haystack as drafts with claims and citations, and back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from haystack import Document
from haystack.dataclasses import GeneratedAnswer

from components.answer.utterances import utterances
from components.language.injection import orders
from components.language.marks import FENCE
from components.language.sentences import sentence_spans
from components.language.words import stems
from components.passages import to_passage
from components.turn import Citation, Claim, Draft, Passage

_FENCE = re.compile(rf"\s*{FENCE}")
_FOREIGN_MARK = re.compile(r"\[(\d+)\]")

_MAX_TOPICS = 3
_MAX_TOPIC_LENGTH = 160

DRAFT = "draft"
"""The key of the draft in an answer's metadata."""


def to_answer(draft: Draft, query: str, documents: Sequence[Document] = ()) -> GeneratedAnswer:
    """Return the draft as Haystack's answer; `documents` are its sources."""
    return GeneratedAnswer(data=draft.text, query=query, documents=list(documents), meta={DRAFT: draft})


def to_draft(answer: GeneratedAnswer) -> Draft:
    """Return the draft of an answer. Parse the marks [N] if another component (`AnswerBuilder`) wrote the answer."""
    draft = answer.meta.get(DRAFT)
    if isinstance(draft, Draft):
        return draft
    numbered = {
        int(document.meta.get("source_index", place)): to_passage(document)
        for place, document in enumerate(answer.documents, 1)
    }
    return replace(draft_of_text(str(answer.data), numbered), model=str(answer.meta.get("model", "")))


def draft_of_text(text: str, numbered: Mapping[int, Passage]) -> Draft:
    """Return a text with marks [N] as a draft; marks that lead nowhere are dropped."""
    claims: list[Claim] = []
    for utterance in utterances(text):
        marks = tuple(number for number in utterance.marks if number in numbered)
        for place, sentence in enumerate(utterance.sentences):
            gap = " "
            if place == 0 and utterance.own_line:
                gap = f"\n{utterance.bullet} " if utterance.bullet else "\n"
            claims.append(Claim(sentence, marks, gap=gap))
    return with_claims(Draft("", (), ()), claims, numbered)


def with_claims(draft: Draft, claims: Iterable[Claim], numbered: Mapping[int, Passage]) -> Draft:
    """Return the draft with these claims, its text and its citations made of them."""
    kept = _with_items(tuple(claims))
    used = sorted({number for claim in kept for number in claim.citations})
    quotes = {number: [claim.quote or claim.text for claim in kept if number in claim.citations] for number in used}
    citations = tuple(_citation(number, numbered[number], quotes[number]) for number in used)
    return replace(draft, claims=kept, citations=citations, text=rendered(kept, grouped=draft.quoted))


def rendered(claims: Sequence[Claim], *, grouped: bool = False) -> str:
    """Return the claims as text with citation marks [N]. Write a number in brackets inside a claim as `[ 2 ]`.

    Threat: an article or a tool confirms itself with the mark of a source that it does not have. Spaces leave an index
    in code valid.

    :param grouped: set a mark once, behind the last of consecutive claims that share it.
    """
    text = ""
    for place, claim in enumerate(claims):
        text += (claim.gap if text else claim.gap.lstrip()) + _FOREIGN_MARK.sub(r"[ \1 ]", claim.text)
        following = claims[place + 1] if place + 1 < len(claims) else None
        shared = grouped and following is not None and following.citations == claim.citations
        if claim.citations and not is_lead(claim) and not shared:
            # A mark behind the closing fence would keep a block of code open.
            text += "\n" if _FENCE.match(claim.text) else " "
            text += "".join(f"[{number}]" for number in claim.citations)
    return text


def _with_items(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Return the claims without lead-ins that announce nothing, each lead-in citing what the claim behind it cites."""
    kept: list[Claim] = []
    for claim in reversed(claims):
        if is_lead(claim):
            if not kept:
                continue
            if not claim.citations:
                kept.append(replace(claim, status="supported"))
                continue
        kept.append(claim)
    return tuple(reversed(kept))


def topics(missing: Sequence[str]) -> tuple[str, ...]:
    """Return at most three topics that an answer leaves open, each on one line and short enough for a notice."""
    lines = (" ".join(topic.split()).rstrip(".;") for topic in missing)
    return tuple(dict.fromkeys(line for line in lines if 0 < len(line) <= _MAX_TOPIC_LENGTH))[:_MAX_TOPICS]


def is_lead(claim: Claim) -> bool:
    """Return whether the claim only announces what follows."""
    return claim.text.rstrip().endswith(":")


def _citation(number: int, passage: Passage, quotes: Sequence[str]) -> Citation:
    """Return a citation whose excerpt spans all quotes, or the sentence nearest to each where none is verbatim.

    The excerpt is the whole passage if no sentence shares a word with them. It stops before a sentence that may not be
    quoted.
    """
    found = (re.search(rf"(?<!\w){re.escape(quote)}(?!\w)", passage.text) for quote in quotes if quote)
    places = [match.span() for match in found if match]
    places = places or [place for quote in quotes if (place := _nearest(passage, quote)) is not None]
    start, end = (min(a for a, _ in places), max(b for _, b in places)) if places else (0, len(passage.text))
    spans = sentence_spans(passage.text)
    if len(passage.sentences) < len(spans):
        withheld = (spans[place][0] for place in orders(passage.text, spans))
        end = min((at for at in withheld if start < at < end), default=end)
    return Citation(number, passage, passage.text[start:end], (start, end))


def _nearest(passage: Passage, claim: str) -> tuple[int, int] | None:
    """Return the span of the sentence that shares most words with the claim; None if none shares any."""
    said = frozenset(stems(claim))

    def shared(span: tuple[int, int]) -> int:
        return len(said.intersection(stems(passage.text[slice(*span)])))

    best = max(passage.sentences, key=shared, default=None)
    return best if best is not None and shared(best) else None
