"""The real ask pipeline with scripted steps in place of those that search, judge and write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from components.judge.protocol import Cited, ClaimVerdict, Judge
from haystack import Pipeline, component
from haystack.core.component import Component

from components.answer.suggestions import QuestionSuggester
from components.judge.evaluator import RetrievalEvaluator
from components.judge.grader import DocGrader
from components.judge.self_evaluator import SelfEvaluator
from components.judge.verifier import FactVerifier
from components.language.vocabulary import Vocabulary
from components.retrieve.retriever import merged
from components.turn import Citation, Claim, Draft, Passage, Query, SelfEvaluation, Turn
from components.understand.rewrite import QueryRewriter
from pipelines.ask.engine import YAML
from pipelines.definition import ALLOWED_MODULES, load
from tests.turns import passage

THRESHOLD = 0.55
WORTH_RETRYING = 0.3


@dataclass(frozen=True)
class Pass:
    """What happens in one pass: passages found (id to search score), and how the draft written in it is judged."""

    found: Mapping[str, float] = field(default_factory=dict)
    quality: int = 90
    supported: tuple[bool, ...] = (True,)


@dataclass
class Script:
    """The passes of one turn, the relevance of every passage, and what was seen while it ran."""

    passes: Sequence[Pass]
    relevances: Mapping[str, float]
    same_texts: frozenset[str] = frozenset()
    seen: list[frozenset[str]] = field(default_factory=list)
    drafts: list[tuple[Draft, int, float]] = field(default_factory=list)
    answers: int = 0

    def at(self, turn: Turn) -> Pass:
        """The pass that the turn is in."""
        return self.passes[turn.passes - 1]

    def passage(self, chunk_id: str, score: float) -> Passage:
        """Ids are `document.number`; ids in `same_texts` say all the same."""
        text = "Одно и то же." if chunk_id in self.same_texts else f"Текст {chunk_id} ни на что не похож."
        base = passage(text, chunk_id, doc_id=chunk_id.split(".", maxsplit=1)[0])
        return replace(base, score=score, scores={"text-sparse": score})


@component
class PassThrough:
    """Passes every turn on through one socket and never uses the other."""

    def __init__(self, used: str, unused: str = "") -> None:
        self.used = used
        component.set_output_types(self, **{name: Turn for name in (used, unused) if name})

    def run(self, turn: Turn) -> dict[str, Turn]:
        return {self.used: turn}


@component
class FixedReply:
    """Stops every turn with one outcome, as the guard and the intent classifier may."""

    def __init__(self, stopped: Turn) -> None:
        self.stopped = stopped

    @component.output_types(answerable=Turn, fixed=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        stopped = self.stopped
        decided = replace(turn, outcome=stopped.outcome, reason=stopped.reason, risk=stopped.risk)
        return {"fixed": replace(decided, intent=stopped.intent)}


@component
class EndlessRewriter:
    """Always has another query to try, so that nothing but the loops' own rules ends them."""

    @component.output_types(search=Turn, exhausted=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        text = f"запрос {turn.passes}"
        return {
            "search": replace(
                turn, query=Query(text, searched_texts=(*turn.query.searched_texts, text)), passes=turn.passes + 1
            )
        }


@component
class ScriptedRetriever:
    """Finds what the script says for this pass, and notes what was known before it."""

    def __init__(self, script: Script) -> None:
        self.script = script

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        self.script.seen.append(ids(turn))
        results = [self.script.passage(chunk_id, score) for chunk_id, score in self.script.at(turn).found.items()]
        results.sort(key=lambda one: -one.score)
        return {"turn": replace(turn, evidence=merged(turn, results))}


@component
class CountingAnswerer:
    """Writes one claim for each entry of the pass's `supported`, citing the best passage; counts its calls."""

    def __init__(self, script: Script) -> None:
        self.script = script

    @component.output_types(turn=Turn, refused=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        self.script.answers += 1
        source = turn.evidence.relevant_passages()[0]
        cited = Citation(1, source, source.text, (0, len(source.text)))
        claims = [
            f"Проход {turn.passes}, {number}: {'верно' if fine else 'выдумка'}."
            for number, fine in enumerate(self.script.at(turn).supported)
        ]
        draft = Draft(" ".join(f"{item} [1]" for item in claims), tuple(Claim(item, (1,)) for item in claims), (cited,))
        return {"turn": replace(turn, draft=draft)}


class ScriptedJudge:
    """Judges by the script; a claim is false when it says so."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def relevance(self, query: Query, passages: Sequence[Passage]) -> Mapping[str, float]:
        return {passage.chunk_id: self.script.relevances.get(passage.chunk_id, 0.0) for passage in passages}

    def ceiling(self, query: Query, vocabulary: Vocabulary) -> float:
        return 1.0

    def uncovered(self, query: Query, passages: Sequence[Passage]) -> tuple[str, ...]:
        return ()

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        lie, truth = ClaimVerdict("unsupported", 0.0, ""), ClaimVerdict("supported", 1.0, "Текст")
        return [lie if "выдумка" in claim.text else truth for claim in claims]

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        quality = self.script.passes[len(self.script.seen) - 1].quality
        self.script.drafts.append((draft, quality, turn.evidence.adequacy))
        return SelfEvaluation(quality, "fully", 0.9, ())


def ids(turn: Turn) -> frozenset[str]:
    """The chunk ids of a turn's evidence."""
    return frozenset(passage.chunk_id for passage in turn.evidence.passages)


def judged_by(judge: Judge) -> dict[str, Component]:
    """Every judging step of the pipeline with this judge in it."""
    return {
        "rewrite": QueryRewriter(),
        "grade": DocGrader(judge),
        "evaluate_retrieval": RetrievalEvaluator(judge, threshold=THRESHOLD, worth_retrying=WORTH_RETRYING),
        "verify": FactVerifier(judge),
        "self_evaluate": SelfEvaluator(judge),
        "suggest": QuestionSuggester(judge),
    }


def passing_steps() -> dict[str, Component]:
    """Steps before the loop that pass every question on."""
    return {
        "guard": PassThrough("turn", "blocked"),
        "intent": PassThrough("answerable", "fixed"),
        "complexity": PassThrough("turn"),
    }


@cache
def _content(path: Path) -> dict[str, object]:
    return load(path)


def run(turn: Turn, components: Mapping[str, Component], path: Path = YAML) -> Turn:
    """The turn at the end of the real pipeline with these components in it."""
    pipeline = Pipeline.from_dict(_content(path), allowed_modules=ALLOWED_MODULES, components=dict(components))
    result = pipeline.run({"guard": {"turn": turn}})
    assert list(result) == ["outcome"]
    finished = result["outcome"]["turn"]
    assert isinstance(finished, Turn)
    return finished


def play(script: Script, turn: Turn) -> Turn:
    """The turn at the end of the real pipeline that follows the script."""
    steps: dict[str, Component] = {
        "rewrite": EndlessRewriter(),
        "retrieve": ScriptedRetriever(script),
        "answer": CountingAnswerer(script),
    }
    return run(turn, {**passing_steps(), **judged_by(ScriptedJudge(script)), **steps})
