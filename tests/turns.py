"""Short constructors of documents, queries, drafts and judges for the steps of the ask pipeline, and a turn in work."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from haystack import Document
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_answer, with_claims
from components.judge.llm import Grades
from components.language.identifiers import codes
from components.language.sentences import sentence_spans
from components.language.words import stems
from components.passages import Chunk
from components.turn import Claim, Draft, Evidence, Passage, Query, RejectedApproach, SelfEvaluation, Turn
from tenants.core import fairness
from tenants.core.fairness import QuestionPriority

EVALUATED = SelfEvaluation(95, "fully", 1.0, 0.9)


def passage(text: str, chunk_id: str = "c1", *, doc_id: str = "", heading: str = "", title: str = "") -> Passage:
    """Return a passage, by default of a separate document, split into sentences as in ingestion, with score 0.9."""
    return Passage(
        chunk_id=chunk_id,
        doc_id=doc_id or f"document of {chunk_id}",
        title=title,
        heading=heading,
        text=text,
        sentences=sentence_spans(text),
        score=0.9,
        scores={"search": 0.9},
    )


def document(
    text: str,
    chunk_id: str = "c1",
    *,
    doc_id: str = "",
    heading: str = "",
    title: str = "",
    relevance: float = 0.9,
    **meta: object,
) -> Document:
    """Return the passage as a judged document."""
    return Chunk(
        id=chunk_id,
        content=text,
        score=relevance,
        meta={
            "chunk_id": chunk_id,
            "doc_id": doc_id or f"document of {chunk_id}",
            "title": title,
            "heading": heading,
            "sentences": sentence_spans(text),
            "chunk_index": 0,
            "source": "",
            "url": None,
            "lang": "ru",
            "trust": "auto",
            "status": "active",
            "priority": 0,
            "updated_at": "",
            "relevance": relevance,
            "scores": {"search": relevance},
            **meta,
        },
    )


def query(text: str) -> Query:
    """Return the query of a question with equally rare words."""
    return Query(text, weights=dict.fromkeys(stems(text), 1.0), codes=codes(text))


def draft(*sentences: str, of: Passage | None = None, quoted: bool = False) -> Draft:
    """Return a draft of these sentences, all citing one passage, by default a passage with these sentences."""
    source = of or passage(" ".join(sentences))
    return with_claims(Draft("", (), (), quoted=quoted), [Claim(one, (1,)) for one in sentences], {1: source})


def answer(*sentences: str, of: Passage | None = None, quoted: bool = False) -> GeneratedAnswer:
    """Return the draft as Haystack's answer."""
    return to_answer(draft(*sentences, of=of, quoted=quoted), "question")


def turn(question: str, *passages: Passage, relevance: float = 0.9) -> Turn:
    """Return a turn after its first pass, with all passages accepted with `relevance`, in this order."""
    ids = tuple(passage.chunk_id for passage in passages)
    evidence = Evidence(passages, dict.fromkeys(ids, relevance), relevance, ids, adequacy=relevance)
    return Turn("t", question, query=query(question), evidence=evidence, passes=1)


@contextmanager
def question_in_work(priority: QuestionPriority = fairness._PROCESS) -> Iterator[None]:
    """Count a question while the block runs."""
    priority.begin()
    try:
        yield
    finally:
        priority.end()


class FixedJudge:
    """Scripted replacement of `LlmJudge`: judges claims by their text (supported unless listed)."""

    def __init__(
        self,
        unsupported: Sequence[str] = (),
        evaluation: SelfEvaluation = EVALUATED,
        grades: Grades | None = None,
        broken: Sequence[str] = (),
        proposals: Sequence[str] = (),
    ) -> None:
        self.rejected: list[RejectedApproach] = []
        self.unsupported = unsupported
        self.proposing = proposals
        self.evaluation = evaluation
        self.grades = grades
        self.broken = broken
        self.asked: list[str] = []
        self.questions: list[str] = []

    def grade(self, question: str, passages: Sequence[Passage], *, locale: str, tier: str) -> Grades:
        self._raise_if_broken("grade")
        self.asked.extend(one.chunk_id for one in passages)
        return self.grades or Grades(frozenset(one.chunk_id for one in passages), 0.9, ())

    def check(
        self,
        claims: Sequence[Claim],
        passages: Mapping[int, Passage],
        rejected: Sequence[RejectedApproach] = (),
        *,
        locale: str,
        tier: str,
    ) -> tuple[list[Claim], dict[int, RejectedApproach]]:
        self._raise_if_broken("check")
        self.asked.extend(claim.text for claim in claims)
        self.rejected.extend(rejected)
        checked: list[Claim] = [
            replace(claim, status="unsupported" if claim.text in self.unsupported else "supported") for claim in claims
        ]
        proposing = (place for place, claim in enumerate(claims) if claim.text in self.proposing)
        return checked, {place: rejected[0] for place in proposing if rejected}

    def evaluate(
        self, question: str, answer: str, left_open: Sequence[str] = (), *, locale: str, tier: str
    ) -> SelfEvaluation:
        self._raise_if_broken("evaluate")
        self.questions.append(question)
        return self.evaluation

    def _raise_if_broken(self, method: str) -> None:
        if method in self.broken:
            raise RuntimeError(f"the provider's own words about {method}")
