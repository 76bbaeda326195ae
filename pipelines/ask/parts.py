"""Two questions in one message, and the two sides of a comparison: each is answered by itself, then all are joined."""

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from components.answer.drafts import with_claims
from components.decide.articles import ARTICLES_IN_DOUBT
from components.decide.outcome import partly_answered
from components.language.captions import innermost
from components.language.words import stems
from components.turn import SHOWN, Article, Claim, Draft, Evidence, Exchange, Outcome, Passage, Turn
from components.understand.followup import addresses_company, leaning, named
from components.understand.parts import parts_of, sides_of, without_conjunction

_SEARCHED: frozenset[Outcome] = frozenset({*SHOWN, "low_confidence", "clarify", "refused", "cannot_answer"})
_NOT_ANSWERED: frozenset[Outcome] = frozenset({"low_confidence", "refused", "cannot_answer"})
_MAX_SUGGESTIONS = 3


def with_parts(initial: Turn, whole: Turn, run: Callable[[Turn], Turn]) -> Turn:
    """Return the turn with each question of the message answered, or named as missing.

    A part is covered if what is shown cites the section that fits the part best; the sides of a comparison, if it
    names them all. A part that is covered beside an answered one, but has no answer by itself, is named as unsure: the
    section may say nothing about it. A comparison is in part answered, and no side is missing, if an offered section
    names them all. If no part is answered, the articles nearest to each of them are offered. A question that refers to
    the one before it is a part only if the whole message has no answer. A part that names its own topic and has no
    answer after the part before it is asked by itself, too.

    :param initial: the turn as it began.
    :param whole: the same, finished: the answer to the message as one question.
    :param run: takes a turn from question to outcome.
    """
    questions = parts_of(initial.question)
    if not questions and whole.outcome not in SHOWN:
        questions = parts_of(initial.question, with_references=True)
    searched = whole.outcome in _SEARCHED or whole.reason == "low_confidence"
    # A code that the knowledge base lacks ends a turn before the search, whatever else the message asks.
    lacks_code = bool(whole.query.codes) and not whole.evidence.passages
    if not questions or not searched or not (whole.evidence.passages or lacks_code):
        return whole
    sides = sides_of(initial.question)
    if whole.outcome == "answered" and whole.draft is not None and _names(whole.draft.text, sides):
        return whole
    parts: list[Turn] = []
    history = initial.history
    for question in questions:
        part = run(replace(initial, question=question, history=history))
        if part.outcome not in SHOWN and history is not initial.history and _has_topic(question):
            alone = run(replace(initial, question=question))
            part = alone if alone.outcome in SHOWN else part
        parts.append(part)
        history = (*history, Exchange(part.standalone_question or question, part.outcome or "failed"))
    are_answered = [part.outcome in SHOWN for part in parts]
    alike = all(are_answered) or not any(are_answered)
    if whole.outcome == "answered" and alike and all(_covers(whole, part) for part in parts):
        return whole
    if any(are_answered):
        return _joined(whole, _with_whole(parts, whole), sides)
    if whole.outcome in SHOWN or lacks_code:
        return whole
    # The text belongs to the articles: without any of the whole, that of a part that has some.
    able = [one for one in (whole, *parts) if one.reply.articles and one.outcome in _NOT_ANSWERED]
    offering = able[0] if able and whole.outcome in _NOT_ANSWERED else whole
    return replace(whole, reply=replace(offering.reply, articles=_nearest([*parts, whole])))


def _has_topic(question: str) -> bool:
    """Return whether a question can be asked by itself: "where are you?" can, "what is its warranty?" cannot."""
    return addresses_company(question) or (bool(named(question)) and leaning(without_conjunction(question)) != "surely")


def _covers(answer: Turn, part: Turn) -> bool:
    cited = {citation.passage.chunk_id for citation in answer.draft.citations} if answer.draft else set()
    found = part.evidence.relevance_by_chunk
    return bool(found) and max(found, key=lambda chunk_id: found[chunk_id]) in cited


def _with_whole(parts: Sequence[Turn], whole: Turn) -> list[Turn]:
    """Return the parts; the answer to the message answers a part that alone fits its section, but has no answer."""
    if whole.outcome not in SHOWN or any(part.outcome in SHOWN and _covers(whole, part) for part in parts):
        return list(parts)
    covered = next((part for part in parts if _covers(whole, part)), None)
    answer = replace(whole, draft=replace(whole.draft, missing=())) if whole.draft is not None else whole
    return [replace(answer, question=part.question) if part is covered else part for part in parts]


def _names(text: str, sides: Sequence[str]) -> bool:
    """Return whether a text has all words of both sides of a comparison."""
    return bool(sides) and set(stems(text)).issuperset(stems(" ".join(sides)))


def _joined(whole: Turn, parts: Sequence[Turn], sides: Sequence[str]) -> Turn:
    """Return the answers of the parts as one, and the questions that stay open."""
    drafts = [part.draft for part in parts if part.draft is not None and part.outcome in SHOWN]
    draft = _merged(drafts)
    shown = replace(whole, draft=draft)
    open_parts = [part for part in parts if part.outcome not in SHOWN]
    if _names(draft.text, sides):
        open_parts = []
    nearest = _nearest([whole, *open_parts] if sides else open_parts, excluding=_sections(draft))
    missing = draft.missing
    unsure: tuple[str, ...] = ()
    if not any(_names(article.passage.text, sides) for article in nearest):
        unsure = tuple(_missing(part) for part in open_parts if _covers(shown, part))
        missing += tuple(_missing(part) for part in open_parts if not _covers(shown, part))
        missing = tuple(dict.fromkeys(missing))
    is_open = bool(open_parts or missing)
    draft = replace(draft, missing=missing, answerability="partially" if is_open else "fully")
    first = next(part for part in parts if part.outcome in SHOWN)
    cited = {innermost(citation.passage.heading) for citation in draft.citations}
    suggestions = (one for part in parts for one in part.reply.suggestions if one not in cited)
    joined = replace(
        whole,
        draft=draft,
        evidence=_evidence(parts),
        verdict=first.verdict,
        passes=max(part.passes for part in parts),
        filtered=tuple(
            _missing(part) for part in open_parts if part.intent != "answerable" or part.outcome == "blocked"
        ),
        outcome="partially_answered" if is_open else "answered",
        reason=None,
        reply=replace(first.reply, text=draft.text, suggestions=tuple(dict.fromkeys(suggestions))[:_MAX_SUGGESTIONS]),
    )
    return partly_answered(joined, nearest if open_parts else (), unsure) if is_open else joined


def _missing(part: Turn) -> str:
    """Return what an open part asks for: its codes, if the knowledge base lacks them; else the part itself."""
    absent = [code for code in part.query.codes if code in part.evidence.uncovered]
    return ", ".join(absent) or without_conjunction(part.question).rstrip("?!. ")


def _merged(drafts: Sequence[Draft]) -> Draft:
    """Join drafts; a section that two of them quote is quoted once."""
    claims: list[Claim] = []
    numbered: dict[int, Passage] = {}
    said: set[tuple[str, str]] = set()
    for draft in drafts:
        numbers = {}
        used = {number for claim in draft.claims for number in claim.citations}
        for citation in draft.citations:
            if citation.index not in used:
                continue
            known = next((n for n, one in numbered.items() if one.chunk_id == citation.passage.chunk_id), None)
            numbers[citation.index] = known or len(numbered) + 1
            numbered.setdefault(numbers[citation.index], citation.passage)
        begins = True
        for claim in draft.claims:
            key = (claim.text, claim.quote)
            if key in said:
                continue
            said.add(key)
            cites = tuple(numbers[number] for number in claim.citations)
            claims.append(replace(claim, citations=cites, gap="\n\n" if begins and claims else claim.gap))
            begins = False
    first = drafts[0]
    merged = with_claims(replace(first, missing=sum((draft.missing for draft in drafts), ())), claims, numbered)
    return replace(
        merged,
        truncated=any(draft.truncated for draft in drafts),
        quality=min(draft.quality for draft in drafts),
        relevance=min(draft.relevance for draft in drafts),
        confidence=min(draft.confidence for draft in drafts),
        factuality=min(draft.factuality for draft in drafts),
    )


def _evidence(parts: Sequence[Turn]) -> Evidence:
    passages = {passage.chunk_id: passage for part in parts for passage in part.evidence.passages}
    relevance: dict[str, float] = {}
    for part in parts:
        for chunk_id, probability in part.evidence.relevance_by_chunk.items():
            relevance[chunk_id] = max(probability, relevance.get(chunk_id, 0.0))
    best = max((part.evidence for part in parts), key=lambda evidence: evidence.adequacy)
    relevant = dict.fromkeys(one for part in parts for one in part.evidence.relevant_ids)
    return replace(
        best,
        passages=tuple(passages.values()),
        relevance_by_chunk=relevance,
        relevant_ids=tuple(relevant),
        uncovered=tuple(dict.fromkeys(word for part in parts for word in part.evidence.uncovered)),
    )


def _sections(draft: Draft) -> frozenset[tuple[str, str]]:
    return frozenset((one.passage.doc_id, one.passage.heading) for one in draft.citations)


def _nearest(parts: Sequence[Turn], excluding: Container[tuple[str, str]] = frozenset()) -> tuple[Article, ...]:
    """Return the nearest articles of each part in turn, each section once."""
    found: dict[tuple[str, str], Article] = {}
    for place in range(ARTICLES_IN_DOUBT):
        for part in parts:
            for article in part.reply.articles[place : place + 1]:
                section = article.passage.doc_id, article.passage.heading
                if section not in excluding:
                    found.setdefault(section, article)
    return tuple(found.values())[:ARTICLES_IN_DOUBT]
