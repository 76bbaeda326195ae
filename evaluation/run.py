"""Asking a set's questions through the product's own use cases, and measuring what comes back."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

from components.judge.local import LocalJudge
from components.turn import Citation, Draft, Turn
from evaluation import metrics, workspace
from evaluation.cases import Case, PairSet, QuestionSet, Quote, Record, Sentence
from evaluation.curve import area, false_answers_at, refusal_curve
from evaluation.datasets import DATA, READERS, Absent
from evaluation.fixture import fixture, near_miss_codes
from evaluation.intervals import Figure, difference, exact, mean
from evaluation.noise import transliterated, typos, wrong_layout
from evaluation.reference import Reference
from evaluation.report import Failure, SetReport, Skipped
from evaluation.verifying import verify_pairs
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from tenants.context import Tenant, acting_as

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is (0: unknown)."""

_NOISE: dict[str, Callable[[str, int], str]] = {
    "1-typo": lambda question, seed: typos(question, 1, seed),
    "2-typos": lambda question, seed: typos(question, 2, seed),
    "layout": lambda question, _: wrong_layout(question),
    "transliteration": transliterated,
}


def chosen_sets(name: str, data: Path) -> Iterator[QuestionSet | PairSet | Skipped]:
    """The sets behind one name, each followed by its noisy variants; what is absent comes as `Skipped`."""
    if name == "fixture":
        yield fixture()
    elif name == "codes":
        yield near_miss_codes()
    else:
        for part, read in READERS[name].items():
            try:
                found = read(data)
            except Absent as absent:
                yield Skipped(part, absent.path)
                continue
            for one in found:
                yield one
                if one.name == "vkcloud-ru" and isinstance(one, QuestionSet):
                    yield from _noisy(one)


def _noisy(clean: QuestionSet) -> Iterator[QuestionSet]:
    cases = [case for case in clean.cases if case.gold_docs]
    for noise, spoil in _NOISE.items():
        spoiled = tuple(replace(case, question=spoil(case.question, seed)) for seed, case in enumerate(cases))
        yield QuestionSet(f"{clean.name}+{noise}", clean.corpus, spoiled)


def measure(names: Sequence[str], data: Path | None, progress: Progress) -> Iterator[SetReport | Skipped]:
    """Measure the named data sets in order; what is absent comes as `Skipped`. Call `workspace.enter` before."""
    evaluation = Evaluation(progress)
    try:
        for name in names:
            for chosen in chosen_sets(name, data or DATA):
                yield chosen if isinstance(chosen, Skipped) else evaluation.run(chosen)
    finally:
        evaluation.close()


class Evaluation:
    """Measures sets one after another; a knowledge base that several sets share is indexed and read once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._ask: Ask | None = None
        self._tenants: dict[str, Tenant] = {}
        self._references: dict[str, Reference] = {}
        self._hits: dict[str, dict[str, float]] = {}

    def close(self) -> None:
        """Release the pipeline."""
        if self._ask is not None:
            self._ask.close()

    def run(self, chosen: QuestionSet | PairSet) -> SetReport:
        """Measure one set."""
        started = perf_counter()
        if isinstance(chosen, PairSet):
            show = partial(self._progress, chosen.name)
            figures = verify_pairs(chosen, LocalJudge().check, show)
            return SetReport(chosen.name, len(chosen.pairs), perf_counter() - started, figures)
        tenant = self._tenant(chosen)
        with acting_as(tenant):
            reference = self._reference(chosen)
            records = self._asked(chosen)
            report = self._measured(chosen, records, reference)
        return replace(report, seconds=perf_counter() - started)

    def _tenant(self, chosen: QuestionSet) -> Tenant:
        name = chosen.corpus.name
        if name not in self._tenants:
            self._tenants[name] = workspace.tenant_for(chosen.corpus, partial(self._progress, name))
        return self._tenants[name]

    def _reference(self, chosen: QuestionSet) -> Reference:
        name = chosen.corpus.name
        if name not in self._references:
            # One at a time: a reference holds every stem of its chunks in memory.
            self._references = {name: workspace.reference()}
        return self._references[name]

    def _asked(self, chosen: QuestionSet) -> list[Record]:
        if self._ask is None:
            self._ask = Ask()
        self._ask.warm_up()
        records = []
        for done, case in enumerate(chosen.cases, 1):
            request = AskRequest(question=case.question, locale=case.locale)
            started = perf_counter()
            turn = self._ask.turn(request)
            records.append(recorded(case, turn, (perf_counter() - started) * 1_000))
            self._progress(chosen.name, done, len(chosen.cases))
        return records

    def _measured(self, chosen: QuestionSet, records: Sequence[Record], reference: Reference) -> SetReport:
        theirs = [_by_reference(record.case, reference) for record in records]
        curve, reference_curve = refusal_curve(*_scores(records)), refusal_curve(*_scores(theirs))
        figures = {
            **metrics.outcomes(records),
            **metrics.retrieval(records),
            **self._against(chosen, records, theirs),
            **metrics.answering(records),
            **metrics.refusing(records),
            **_trade(records),
            **_codes(chosen, records),
            **metrics.latency(records),
        }
        counted = Counter(record.outcome for record in records)
        return SetReport(
            chosen.name,
            len(records),
            0.0,
            _known(figures),
            _known({**metrics.retrieval(theirs), **metrics.spans_shown(theirs), **_trade(theirs)}),
            curve,
            reference_curve,
            dict(counted.most_common()),
            tuple(_failures(records)),
        )

    def _against(self, chosen: QuestionSet, records: Sequence[Record], theirs: Sequence[Record]) -> metrics.Figures:
        """Paired differences: against the reference, and against the same questions without noise."""
        gold = [(ours, their) for ours, their in zip(records, theirs, strict=True) if ours.case.gold_docs]
        if not gold:
            return {}
        documents = [ours.case.gold_docs for ours, _ in gold]
        hits = metrics.ranking_scores([ours.ranked for ours, _ in gold], documents)["hit@5"]
        reference_hits = metrics.ranking_scores([their.ranked for _, their in gold], documents)["hit@5"]
        self._hits[chosen.name] = {ours.case.case_id: hit for (ours, _), hit in zip(gold, hits, strict=True)}
        figures = {"hit@5_over_reference": difference(hits, reference_hits)}
        clean = self._hits.get(chosen.name.partition("+")[0], {})
        if "+" in chosen.name and clean:
            figures["hit@5_lost"] = difference([clean[ours.case.case_id] for ours, _ in gold], hits)
        return figures


def recorded(case: Case, turn: Turn, milliseconds: float = 0.0) -> Record:
    """What evaluation keeps of a finished turn."""
    draft = turn.best or turn.draft
    record = Record(
        case=case,
        outcome=turn.outcome or "failed",
        reason=turn.reason or "",
        ranked=tuple(dict.fromkeys(passage.doc_id for passage in turn.evidence.passages)),
        text=turn.reply.text,
        score=gate_score(turn),
        milliseconds=milliseconds,
    )
    return replace(record, sentences=_sentences(draft)) if draft is not None and record.shown else record


def gate_score(turn: Turn) -> float:
    """How sure the turn was that the knowledge base holds an answer, 0..1: what the refusal curve moves along."""
    return turn.evidence.adequacy


def _sentences(draft: Draft) -> tuple[Sentence, ...]:
    by_index = {citation.index: citation for citation in draft.citations}
    return tuple(
        Sentence(
            metrics.without_citations(claim.text),
            tuple(_quote(by_index[index]) for index in claim.citations if index in by_index),
        )
        for claim in draft.claims
    )


def _quote(citation: Citation) -> Quote:
    start, end = citation.span
    passage = citation.passage
    return Quote(passage.doc_id, citation.excerpt, passage.text[start:end] == citation.excerpt)


def _by_reference(case: Case, reference: Reference) -> Record:
    sentence, share = reference.best_sentence(case.question)
    ranked = reference.ranked(case.question)
    return Record(case, "answered" if sentence else "refused", ranked=ranked, text=sentence, score=share)


def _scores(records: Sequence[Record]) -> tuple[list[float], list[float]]:
    answerable = [record.score for record in records if record.case.answerable is True]
    return answerable, [record.score for record in records if record.case.answerable is False]


def _trade(records: Sequence[Record]) -> metrics.Figures:
    """The refusal curve in two numbers."""
    answerable, unanswerable = _scores(records)
    point = false_answers_at(refusal_curve(answerable, unanswerable), 0.1)
    if point is None:
        return {}
    return {
        "false_answers_at_10_over_refusal": exact(point.false_answers, len(unanswerable)),
        "refusal_auc": exact(area(answerable, unanswerable), len(records)),
    }


def _codes(chosen: QuestionSet, records: Sequence[Record]) -> metrics.Figures:
    if chosen.name != "codes":
        return {}
    return {
        "answered_with_another_code": mean(
            [float(metrics.answers_another_code(record, record.case.category)) for record in records]
        )
    }


def _failures(records: Sequence[Record]) -> Iterator[Failure]:
    for record in records:
        wanted = _missed(record)
        if wanted:
            got = " / ".join(filter(None, (record.outcome, record.reason, record.text[:300])))
            yield Failure(record.case.case_id, record.case.question, wanted, got)


def _missed(record: Record) -> str:
    """What the case demanded and did not get; empty when all is well."""
    case = record.case
    if case.outcome and record.outcome != case.outcome:
        return f"{case.outcome} {case.reason}".strip()
    if case.outcome and not metrics.has_facts(record):
        return " + ".join(case.must_contain) + "".join(f" - {wording}" for wording in case.must_not_contain)
    if case.answerable is False and record.shown:
        return "a refusal"
    if case.gold_docs and not set(case.gold_docs) & set(record.ranked[:5]):
        return ", ".join(case.gold_docs)
    if case.gold_spans and not metrics.holds_span(metrics.first_sentences(record.text), case.gold_spans):
        return " | ".join(case.gold_spans)
    return ""


def _known(figures: metrics.Figures) -> dict[str, Figure]:
    return {name: figure for name, figure in figures.items() if figure is not None}
