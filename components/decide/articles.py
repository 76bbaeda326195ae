"""Articles to read when there is no answer: the sections nearest to the question, presented as such."""

from textwrap import shorten

from components.answer.units import Unit, is_frame, plain, units
from components.judge.analysis import analyse
from components.judge.approaches import proposed
from components.judge.coverage import Question, prepare, sentence_coverage, word_order
from components.judge.evidence import similarity
from components.language.relatives import relatives
from components.turn import Article, Passage, Turn

_MAX_LENGTH = 240
_MIN_WORDS = 3
_DERIVED = 0.6
_ORDERED = 0.2
# Where no sentence shares a word with the question, the opening one says best what a section is about.
_EARLY = 0.01


def nearest(turn: Turn, min_probability: float, max_articles: int = 3) -> tuple[Article, ...]:
    """The surest section and those most similar to the question, of as many documents as there are; surest first.

    The evidence that puts a section first is about an answer. Where it is not one, what looks like it is none either.

    None when the question names codes that the evidence lacks: a section near E20 is not near E21.

    :param min_probability: least probability, as judged, that a section answers the question.
    """
    evidence = turn.evidence
    if turn.query.codes and set(turn.query.codes) <= set(evidence.uncovered):
        return ()
    judged = {passage.chunk_id: evidence.relevance_by_chunk.get(passage.chunk_id, 0.0) for passage in evidence.passages}
    candidates = [passage for passage in evidence.passages if judged[passage.chunk_id] >= max(min_probability, 1e-9)]
    candidates.sort(key=lambda passage: (-judged[passage.chunk_id], -passage.score))
    nearest_first = candidates[:1] + sorted(candidates[1:], key=lambda passage: -similarity(passage.scores))
    shown = _distinct(nearest_first, max_articles)
    question = prepare(turn.query)
    return tuple(
        Article(passage, snippet(passage, question, turn), judged[passage.chunk_id])
        for passage in sorted(shown, key=candidates.index)
    )


def snippet(passage: Passage, question: Question, turn: Turn) -> str:
    """The one sentence of a passage that is nearest to the question, on one line; empty when none may be quoted."""
    among = units(passage)
    candidates = [unit for unit in among if _can_be_snippet(unit, turn) and not is_frame(unit, among)]
    if not candidates:
        return ""
    analysis = analyse(passage)
    kin = {stem: relatives(stem, analysis.families) for stem in question.weights}

    def nearness(unit: Unit) -> float:
        # What the heading says stands above the line already.
        direct = sum(weight for stem, weight in question.weights.items() if stem in unit.sentence.places)
        _, derived = sentence_coverage(question, analysis, unit.sentence, kin)
        return direct + _DERIVED * derived + _ORDERED * word_order(question, unit.sentence) - _EARLY * unit.number

    return shorten(plain(max(candidates, key=nearness)), _MAX_LENGTH, placeholder="…")


def _can_be_snippet(unit: Unit, turn: Turn) -> bool:
    if unit.kind not in ("sentence", "item", "row") or unit.sentence.length < _MIN_WORDS:
        return False
    if unit.text.endswith(":"):
        return False
    return not any(proposed(unit.text, approach) for approach in turn.evidence.rejected)


def _distinct(passages: list[Passage], max_articles: int) -> list[Passage]:
    """The best passage of each document, then of each further section."""
    documents: dict[str, Passage] = {}
    sections: dict[tuple[str, str], Passage] = {}
    for passage in passages:
        documents.setdefault(passage.doc_id, passage)
        sections.setdefault((passage.doc_id, passage.heading), passage)
    firsts = list(documents.values())[:max_articles]
    remaining = [passage for passage in sections.values() if passage not in firsts]
    return [*firsts, *remaining[: max_articles - len(firsts)]]
