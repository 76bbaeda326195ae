"""Exactly one outcome for every turn, worded in the visitor's language."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_draft
from components.answer.generative import WRITING
from components.decide.answer_guard import AnswerGuard, AnswerRules
from components.decide.articles import ARTICLES, ARTICLES_IN_DOUBT, goes_elsewhere, leads, nearest
from components.decide.main_topics import MainTopics
from components.decide.notices import rejections, source_notices, with_context_citations
from components.faults import is_degraded
from components.judge.grader import GRADER
from components.judge.relevance import COSINE
from components.judge.terms import read_query
from components.language.captions import innermost
from components.language.identifiers import as_typed
from components.language.texts import text
from components.language.words import stems
from components.passages import relevance, to_passage
from components.turn import (
    SHOWN,
    Article,
    Complexity,
    Conflict,
    Draft,
    Evidence,
    Exchange,
    Outcome,
    Passage,
    Query,
    Reason,
    RejectedApproach,
    Related,
    Reply,
    Turn,
    Verdict,
)
from components.understand.followup import MAX_NAMED_GOING_ON, named
from components.understand.intent import CALLBACK, FIXED, PLEA, SMALL_TALK, Reading
from tenants.accounts import policy, registry
from tenants.accounts.policy import Policy
from tenants.chats import sites
from tenants.core import context
from tenants.desk import operator_sessions

_NOT_FOUND: frozenset[Reason] = frozenset(
    {"no_relevant_context", "low_confidence", "llm_self_refusal", "unverified_answer"}
)
"""Reasons that say no more than that no section was quoted."""
_ASKED_BACK: tuple[Outcome, Reason | None] = ("clarify", None)
_WITH_ARTICLES: frozenset[Outcome] = frozenset({"low_confidence", "cannot_answer", "clarify", "refused"})
_OTHER_READING = "other_reading"
_NAMING_TOPICS = frozenset({"greeting", "about_assistant", "chitchat"})
"""Kinds of small talk whose reply names the topics of the tenant's policy."""
_INTRODUCED = frozenset({"greeting", "about_assistant"})
"""Kinds of small talk whose reply names the tenant."""


@component
class OutcomeComposer:
    """Collect what the steps have found in one `Turn`, decide its outcome, and write the reply.

    Every input but the question is optional: a step that did not run sends nothing. A blocked question or a fixed
    intent alone decides the outcome. An accepted answer is shown: `answered` if it closes the question,
    `partially_answered` with what is missing if it does not. Without one, the turn is refused, or clarified if the
    question fits several things and was not clarified before. A turn without an answer offers the nearest sections to
    read. Nothing bypasses `AnswerGuard`.

    :param articles_from: minimum probability that a section answers for it to be offered as an article.
    :param any_from: minimum probability of the likeliest article; below it, none is offered. Of 600 everyday messages
        to the demo shops, 8 had only such articles, which answered one of them at most.
    :param near_from: minimum probability of the first article; below it, the reply doubts that the articles hold an
        answer. Of 499 everyday questions that the demo shops answer, 85 in 100 reach it.
    :param matched_from: probability of an article, compared by meaning, from which a message counts as a question
        although a doubt about its intent is certain. For a less probable doubt, it is lower in proportion.
    :param likely_from: minimum probability of the first article for the outcome `low_confidence` instead of a refusal.
        If the first article leads clearly (`leads`), the outcome is the same, but the reply says that the article
        probably answers, and offers fewer.
    :param alone_from: minimum confidence in a quotation for a short message that leads elsewhere together with the
        question before it. Of 45 such messages to the demo shops, two had less; both were answered as if they were
        about something else.
    :param clarify_from: minimum adequacy to clarify about sections that are not headed by the question.
    :param clarify_words: maximum number of content words of a question that is clarified.
    :param options: maximum number of topics offered for clarification.
    :param topics: finds topics for a customer who has not said what the problem is.
    :param guard: the rules applied to every answer; None: all rules.
    """

    def __init__(
        self,
        articles_from: float = 0.05,
        any_from: float = 0.05,
        near_from: float = 0.05,
        matched_from: float = 0.1,
        likely_from: float = 0.3,
        alone_from: float = 0.6,
        clarify_from: float = 0.2,
        clarify_words: int = 1,
        options: int = 3,
        topics: MainTopics | None = None,
        guard: AnswerRules | None = None,
    ) -> None:
        self.articles_from = articles_from
        self.any_from = any_from
        self.near_from = near_from
        self.matched_from = matched_from
        self.likely_from = likely_from
        self.alone_from = alone_from
        self.clarify_from = clarify_from
        self.clarify_words = clarify_words
        self.options = options
        self.topics = topics or MainTopics()
        self.guard = guard or AnswerRules()

    @component.output_types(turn=Turn)
    def run(
        self,
        question: str,
        locale: str = "ru",
        history: list[Exchange] | None = None,
        blocked: str = "",
        fixed: Reading | None = None,
        doubt: Reading | None = None,
        understood: Query | None = None,
        standalone: str = "",
        absent: list[str] | None = None,
        complexity: Complexity = "unknown",
        cached: bool = False,
        attempt: int = 0,
        graded: list[Document] | None = None,
        looked_up: list[Document] | None = None,
        adequacy: float = 0.0,
        missing: list[str] | None = None,
        related: list[Related] | None = None,
        rejected: list[RejectedApproach] | None = None,
        conflicts: list[Conflict] | None = None,
        refused: Verdict | None = None,
        exhausted: Verdict | None = None,
        best: GeneratedAnswer | None = None,
        curated: list[GeneratedAnswer] | None = None,
        answers: list[GeneratedAnswer] | None = None,
        verdict: Verdict | None = None,
        suggestions: list[str] | None = None,
        in_context: list[Document] | None = None,
    ) -> dict[str, Turn]:
        """Return the turn with `outcome`, `reason` and `reply`.

        :param blocked: the guard's offence.
        :param fixed: an intent that no document answers; `doubt` counts if no document answers.
        :param absent: codes that the knowledge base lacks.
        :param graded: all documents, graded; `looked_up` are the accepted ones with those of tools.
        :param refused: the verdict on evidence that is not enough; `exhausted` if there was nothing to search for.
        :param best: the best answer of earlier passes, for a turn whose last pass brought none.
        :param curated: an approved answer, which nothing has to decide on.
        :param in_context: sections for other readings of the message, offered to read beside the graded ones.
        :param answers: the accepted answer; `verdict` is that of its gates.
        """
        answer = next(iter(curated or answers or ()), best)
        draft = to_draft(answer) if answer else None
        if draft is not None and draft.quoted and draft.claims and draft.answerability == "cannot":
            # The evidence is too weak to quote, as if the retrieval evaluator had refused it.
            draft = None
        if curated:
            graded, adequacy = curated[0].documents, 1.0
        evidence = _evidence(graded or [], looked_up or [], adequacy, absent or missing or [])
        turn = Turn(
            "",
            question,
            locale=locale,
            history=tuple(history or ()),
            standalone_question=standalone,
            intent=fixed.intent if fixed else "answerable",
            risk=fixed.risk if fixed else "none",
            complexity=complexity,
            query=understood or Query(question),
            evidence=replace(
                evidence,
                related=tuple(related or ()),
                rejected=tuple(rejected or ()),
                conflicts=tuple(conflicts or ()),
                cached=cached,
            ),
            draft=draft,
            verdict=_verdict(absent, refused, exhausted, verdict, has_answer=answer is not None),
            passes=attempt,
        )
        if blocked:
            turn = replace(turn, outcome="blocked", reason="blocked_by_guardrails")
        elif fixed is not None:
            outcome, reason = FIXED.get(fixed.intent, _ASKED_BACK)
            turn = replace(turn, outcome=outcome, reason=reason)
        beside = in_context or ()
        finished = self._finished(turn, tuple(suggestions or ()), fixed.kind if fixed else "", beside)
        if doubt and finished.reason == "no_relevant_context" and not self._is_matched(finished.reply.articles, doubt):
            outcome, reason = FIXED.get(doubt.intent, _ASKED_BACK)
            turn = replace(turn, intent=doubt.intent, risk=doubt.risk, outcome=outcome, reason=reason)
            finished = self._finished(turn, (), doubt.kind)
        return {"turn": finished}

    def _is_matched(self, articles: Sequence[Article], doubt: Reading) -> bool:
        """Return whether an article is near enough by meaning: by words alone, chance matches score as high."""
        least = self.matched_from * doubt.probability
        return any(one.score >= least for one in articles if COSINE in one.passage.scores)

    def _finished(self, turn: Turn, suggestions: tuple[str, ...], kind: str, beside: Sequence[Document] = ()) -> Turn:
        rules = policy.current()
        guard = AnswerGuard(turn, rules, self.guard)
        if turn.draft is not None:
            turn = replace(turn, draft=guard.draft(with_context_citations(turn.draft, turn)))
        if self._goes_on(turn, beside) or (
            turn.draft is None and turn.evidence.passages and goes_elsewhere(turn, beside)
        ):
            reasons = (*turn.verdict.reasons, _OTHER_READING)
            turn = replace(turn, draft=None, verdict=replace(turn.verdict, route="human", reasons=reasons))
        max_articles = ARTICLES if _first_leads(turn) else ARTICLES_IN_DOUBT
        articles = () if turn.outcome else nearest(turn, self.articles_from, max_articles, beside)
        # What leans on the question before is about the same matter, however little it says.
        is_about_topic = bool(turn.standalone_question) and bool(beside)
        if not (_is_chosen(turn) or is_about_topic) and all(one.score < self.any_from for one in articles):
            articles = ()
        outcome, reason = (turn.outcome, turn.reason) if turn.outcome else self._decide(turn, rules, articles)
        decided = replace(turn, outcome=outcome, reason=reason)
        reply = self._reply(decided, rules, articles if outcome in _WITH_ARTICLES else (), kind)
        if outcome in SHOWN:
            reply = replace(reply, suggestions=suggestions)
        verdict = replace(turn.verdict, reasons=(*turn.verdict.reasons, *guard.reasons))
        return replace(decided, reply=guard.reply(reply), verdict=verdict)

    def _decide(self, turn: Turn, rules: Policy, articles: Sequence[Article]) -> tuple[Outcome, Reason | None]:
        draft = turn.draft
        if draft is None and is_degraded(GRADER):
            # The passages were not graded, so do not claim that the knowledge base has no answer.
            return "failed", "pipeline_error"
        if draft is not None and draft.options and self._may_ask_back(turn):
            return "clarify", None
        if draft is not None and "budget_exhausted" in turn.verdict.reasons and _calls_person(rules):
            return "human_followup", "budget_exhausted"
        if draft is None or (not draft.claims and draft.factuality_status != "checked"):
            if draft is None and self._is_vague(turn, articles):
                return "clarify", None
            if draft is not None and draft.withheld:
                return "cannot_answer", "insufficient_context"
            if articles and (_first_answers(turn) or _best_score(articles) >= self.likely_from):
                return self._weak(rules)
            if draft is None and is_degraded(WRITING):
                return "failed", "pipeline_error"
            return "refused", "no_relevant_context" if draft is None else "llm_self_refusal"
        if draft.factuality_status == "failed":
            return "human_followup", "budget_exhausted"
        if not draft.claims:
            return ("cannot_answer", "insufficient_context") if draft.withheld else ("refused", "unverified_answer")
        if draft.answerability == "cannot":
            return "cannot_answer", "insufficient_context"
        if turn.verdict.route != "auto" or (draft.quoted and draft.confidence < rules.answer_threshold):
            return self._weak(rules)
        complete = draft.answerability == "fully" and not turn.verdict.reasons and not draft.missing
        return ("answered", None) if complete else ("partially_answered", None)

    def _goes_on(self, turn: Turn, beside: Sequence[Document]) -> bool:
        """Return whether a short message, quoted as typed, leads elsewhere with the question before it."""
        draft = turn.draft
        if draft is None or not draft.quoted or not draft.claims or draft.confidence >= self.alone_from:
            return False
        if turn.standalone_question or len(named(turn.question)) > MAX_NAMED_GOING_ON:
            return False
        cited = {citation.passage.doc_id for citation in draft.citations}
        leading = (one for one in beside if one.meta.get("leads") and relevance(one) >= self.near_from)
        return any(to_passage(one).doc_id not in cited for one in leading)

    @staticmethod
    def _weak(rules: Policy) -> tuple[Outcome, Reason | None]:
        return ("human_followup", "low_confidence") if rules.low_confidence_to_human else ("low_confidence", None)

    def _is_vague(self, turn: Turn, articles: Sequence[Article]) -> bool:
        """Return whether the question is a word or two and several sections are about it."""
        return (
            not turn.query.codes
            and len(read_query(turn.query.search).weights) <= self.clarify_words
            and len(self._topics(turn, articles)) > 1
            and self._may_ask_back(turn)
        )

    @staticmethod
    def _may_ask_back(turn: Turn) -> bool:
        """Asked back once, a visitor has had the choice; the second time it would be a dead end, unless they chose."""
        asked = [exchange for exchange in turn.history if exchange.outcome == "clarify"]
        return not asked or (len(asked) == 1 and turn.question in asked[0].options)

    def _topics(self, turn: Turn, articles: Sequence[Article]) -> tuple[str, ...]:
        """Return the topics to choose from: of the draft, or the sections that answer or are headed by the question."""
        if turn.draft is not None and turn.draft.options:
            return turn.draft.options[: self.options]
        relevant = turn.evidence.relevant_passages() if turn.evidence.adequacy >= self.clarify_from else ()
        asked = frozenset(stems(turn.query.search))
        headed = [
            _choice(passage, asked)
            for passage in (*relevant, *(one.passage for one in articles))
            if asked and asked.issubset(stems(f"{passage.title} {passage.heading}"))
        ]
        # Sections that only mention the word are worse choices than those about it.
        choices = headed if len(set(headed)) > 1 else [*(_choice(passage, asked) for passage in relevant), *headed]
        others = (choice for choice in choices if choice and choice != turn.question)
        return tuple(dict.fromkeys(others))[: self.options]

    def _reply(self, turn: Turn, rules: Policy, articles: tuple[Article, ...], kind: str) -> Reply:
        draft = turn.draft
        if kind == PLEA:
            topics = self.topics.find(turn.locale)
            asked = text(f"outcomes.clarify.{'plea_topics' if topics else 'plea'}", turn.locale)
            return Reply(asked, clarification=topics or None)
        if kind in SMALL_TALK and turn.outcome == "irrelevant":
            stated = rules.topics(turn.locale)
            section = "topics" if stated and kind in _NAMING_TOPICS else "small_talk"
            tenant = _introduction(turn.locale) if kind in _INTRODUCED else ""
            return Reply(text(f"outcomes.{section}.{kind}", turn.locale, topics=stated, tenant=tenant))
        if turn.outcome in SHOWN and draft:
            return Reply(draft.text, notice=_notice(turn, draft))
        if turn.outcome == "clarify":
            options = self._topics(turn, articles)
            question_back = text("outcomes.clarify.options", turn.locale)
            return Reply(question_back, clarification=options, articles=articles)
        notice = " ".join(rejections(draft, turn)) if turn.outcome in _WITH_ARTICLES else ""
        if kind == CALLBACK:
            fixed_text = text("outcomes.human_followup.callback", turn.locale)
        elif articles:
            fixed_text = self._above_articles(turn, articles)
        else:
            fixed_text = _fixed_text(turn, rules.topics(turn.locale))
        return Reply(
            fixed_text,
            notice=notice or None,
            handoff=_handoff(turn, rules),
            articles=articles,
        )

    def _above_articles(self, turn: Turn, articles: Sequence[Article]) -> str:
        """Return the text above articles: how likely they answer, after any reason why something was withheld."""
        count, score = "one" if len(articles) == 1 else "some", _best_score(articles)
        if turn.reason in _NOT_FOUND or turn.outcome == "low_confidence":
            is_near = _is_chosen(turn) or score >= self.near_from
            certainty = "likely_" if _first_answers(turn) else "near_" if is_near else "far_"
            return text(f"outcomes.articles.{certainty}{count}", turn.locale)
        # A visitor with articles to read needs no referral to another contact.
        outcome_text = text(f"outcomes.{turn.outcome}.{turn.reason or 'default'}", turn.locale)
        return f"{outcome_text} {text(f'outcomes.articles.{count}', turn.locale)}"


def _choice(passage: Passage, asked: frozenset[str]) -> str:
    """Return the heading of a section, after the title if only that has the words of the question."""
    heading = innermost(passage.heading)
    if heading and asked and asked.issubset(stems(passage.title)) and not asked.issubset(stems(heading)):
        return f"{passage.title} › {heading}"
    return heading or passage.title


def _introduction(locale: str) -> str:
    """Return a sentence with the name of the tenant, and a space; empty if it has only its id."""
    tenant = registry.current()
    return f"{text('outcomes.tenant', locale, name=tenant.name)} " if tenant.name != tenant.tenant_id else ""


def _evidence(
    graded: Sequence[Document], accepted: Sequence[Document], adequacy: float, uncovered: Sequence[str]
) -> Evidence:
    """Return the documents of a turn as its evidence; those of tools first."""
    known = {document.id for document in graded}
    documents = [*(document for document in accepted if document.id not in known), *graded]
    passages = tuple(map(to_passage, documents))
    relevances = {passage.chunk_id: relevance(one) for passage, one in zip(passages, documents, strict=True)}
    relevant = tuple(to_passage(one).chunk_id for one in documents if one.meta.get("graded"))
    best = max((relevances[one] for one in relevant), default=0.0)
    return Evidence(passages, relevances, best, relevant, adequacy, tuple(uncovered))


def _verdict(
    absent: Sequence[str] | None,
    refused: Verdict | None,
    exhausted: Verdict | None,
    decided: Verdict | None,
    *,
    has_answer: bool,
) -> Verdict:
    """Return the verdict of the step that ended the turn."""
    if absent:
        return Verdict("human", ("code_not_found",))
    if decided is not None and has_answer:
        # A retry that brought nothing new leaves the verdict on the best answer so far.
        return replace(decided, route="auto") if decided.route == "retry" else decided
    return refused or exhausted or decided or Verdict()


def partly_answered(turn: Turn, articles: tuple[Article, ...], unsure: Sequence[str] = ()) -> Turn:
    """Return the answered turn with a notice of what its draft leaves open, and articles about that.

    :param unsure: questions that the draft may answer.
    """
    notice = _notice(turn, turn.draft, unsure, with_articles=bool(articles)) if turn.draft else None
    return replace(turn, reply=replace(turn.reply, notice=notice, articles=articles))


def _notice(turn: Turn, draft: Draft, unsure: Sequence[str] = (), *, with_articles: bool = False) -> str | None:
    notices = []
    if turn.outcome == "partially_answered":
        for key, topics in (("missing", draft.missing), ("unsure", unsure)):
            if topics:
                notices.append(text(f"outcomes.partially_answered.{key}", turn.locale, topics="; ".join(topics)))
        advice = "default" if not notices else "articles" if with_articles else "ask"
        notices.append(text(f"outcomes.partially_answered.{advice}", turn.locale))
    if draft.truncated:
        notices.append(_continues(turn, draft))
    notices.extend(source_notices(draft, turn))
    return " ".join(notices) or None


def _continues(turn: Turn, draft: Draft) -> str:
    titles = (
        citation.passage.title
        for citation in draft.citations
        if citation.origin == "primary" and citation.passage.title
    )
    title = next(titles, "")
    return text(f"outcomes.notice.{'section_cut_in' if title else 'section_cut'}", turn.locale, title=title)


def _is_chosen(turn: Turn) -> bool:
    """Return whether a model chose the articles to offer."""
    return turn.draft is not None and turn.draft.to_read is not None


def _first_leads(turn: Turn) -> bool:
    """Return whether the first article is far more probable than the others, and by any reading of the message."""
    return leads(turn) and _OTHER_READING not in turn.verdict.reasons


def _best_score(articles: Sequence[Article]) -> float:
    """Return the probability of the likeliest article, which is not the first if those of two readings alternate."""
    return max(article.score for article in articles)


def _first_answers(turn: Turn) -> bool:
    """Return whether the first article probably answers; not if a model that read it chose articles instead."""
    return _first_leads(turn) and not _is_chosen(turn)


def _fixed_text(turn: Turn, topics: str) -> str:
    """Return the most specific text available: by unknown code, by risk, by reason, by outcome."""
    unknown_codes = [code for code in turn.query.codes if code in turn.evidence.uncovered]
    if turn.outcome == "refused" and unknown_codes:
        spelt = ", ".join(as_typed(code, turn.question) for code in unknown_codes)
        return text("outcomes.refused.unknown_code", turn.locale, code=spelt)
    if turn.outcome == "high_stakes" and turn.risk != "none":
        return text(f"outcomes.high_stakes.{turn.risk}", turn.locale)
    if topics and turn.intent in ("irrelevant", "nonsense"):
        return text(f"outcomes.topics.{turn.intent}", turn.locale, topics=topics)
    return text(f"outcomes.{turn.outcome}.{turn.reason or 'default'}", turn.locale)


def _handoff(turn: Turn, rules: Policy) -> Mapping[str, str] | None:
    """Return the offer that accompanies a handoff: only what the tenant has approved."""
    if turn.outcome not in ("high_stakes", "human_followup"):
        return None
    return {"channel": rules.handoff_channel, "offer": _offer(turn, rules.approved_offers)}


def _offer(turn: Turn, offers: Mapping[str, str]) -> str:
    """Return the offer for this risk whose words the request has; else the one for every request of the risk."""
    asked = set(stems(turn.standalone_question or turn.question))
    for name, offer in offers.items():
        risk, _, about = name.partition("/")
        if risk == turn.risk and asked.intersection(stems(about)):
            return offer
    return offers.get(turn.risk, "")


def _calls_person(rules: Policy) -> bool:
    """Return whether a person is called for a question that used up its passes."""
    if rules.spent_budget_to_person == "staffed":
        hours = sites.hours(context.current().site)
        return hours.at(datetime.now(UTC)).open if hours is not None else operator_sessions.desk_in_use()
    return rules.spent_budget_to_person == "always"
