"""Exactly one outcome for every turn, worded in the visitor's language."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from haystack import component

from components.decide.answer_guard import AnswerGuard, AnswerRules
from components.decide.articles import nearest
from components.decide.notices import rejections, source_notices, with_context_citations
from components.language.captions import innermost
from components.language.texts import text
from components.turn import Article, Draft, Outcome, Reason, Reply, Turn
from tenants import policy
from tenants.policy import Policy

_SHOWN: frozenset[Outcome] = frozenset({"answered", "partially_answered"})
_ABSENT: frozenset[Reason] = frozenset({"no_relevant_context", "insufficient_context"})
_WITH_ARTICLES: frozenset[Outcome] = frozenset({"low_confidence", "cannot_answer", "clarify", "refused"})


@component
class OutcomeComposer:
    """Decides the outcome that earlier steps left open and writes the reply.

    An outcome set by the guard or the intent classifier is kept. Without a draft the turn is refused, or clarified when
    the question is short, the evidence came close, and the conversation has not been clarified before. With one, the
    verdict's route and gates decide; see the table of outcomes in the contract. Nothing bypasses `AnswerGuard`.

    A turn that has evidence on the topic but no answer offers the nearest sections to read; its draft is not shown.

    :param articles_from: least probability that a section answers, so that it is offered to read.
    :param weak_from: the same of the best one, from which on evidence is weak rather than absent: a turn with none of
        it counts as a gap in the knowledge base.
    :param clarify_from: least adequacy to clarify instead of refusing.
    :param clarify_words: most content words of a question that is clarified.
    :param options: most topics offered for clarification.
    :param guard: the rules applied to every answer; None: all rules.
    """

    def __init__(
        self,
        articles_from: float = 0.05,
        weak_from: float = 0.3,
        clarify_from: float = 0.35,
        clarify_words: int = 2,
        options: int = 3,
        guard: AnswerRules | None = None,
    ) -> None:
        self.articles_from = articles_from
        self.weak_from = weak_from
        self.clarify_from = clarify_from
        self.clarify_words = clarify_words
        self.options = options
        self.guard = guard or AnswerRules()

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with `outcome`, `reason` and `reply`."""
        rules = policy.current()
        guard = AnswerGuard(turn, rules, self.guard)
        draft = turn.best or turn.draft
        if draft:
            draft = guard.draft(with_context_citations(draft, turn))
            turn = replace(turn, draft=draft, best=draft)
        articles = () if turn.outcome else nearest(turn, self.articles_from)
        outcome, reason = (turn.outcome, turn.reason) if turn.outcome else self._decide(turn, rules, articles)
        decided = replace(turn, outcome=outcome, reason=reason)
        reply = guard.reply(self._reply(decided, rules, articles if outcome in _WITH_ARTICLES else ()))
        verdict = replace(turn.verdict, reasons=(*turn.verdict.reasons, *guard.reasons))
        return {"turn": replace(decided, reply=reply, verdict=verdict)}

    def _decide(self, turn: Turn, rules: Policy, articles: Sequence[Article]) -> tuple[Outcome, Reason | None]:
        draft = turn.best or turn.draft
        if draft is None and "grader" in turn.degraded:
            # Nobody looked at what was found, so nobody may say that the knowledge base has no answer.
            return "failed", "pipeline_error"
        if draft is None:
            if self._may_clarify(turn):
                return "clarify", None
            if articles and articles[0].score >= self.weak_from:
                return self._weak(rules)
            return "refused", "no_relevant_context"
        if not draft.claims:
            # All that could have been quoted proposes what was rejected.
            return ("cannot_answer", "insufficient_context") if draft.withheld else ("refused", "unverified_answer")
        if draft.factuality_status == "failed":
            return "human_followup", "budget_exhausted"
        if draft.answerability == "cannot":
            return "cannot_answer", "insufficient_context"
        if turn.verdict.route != "auto" or draft.confidence < rules.answer_threshold:
            return self._weak(rules)
        return ("partially_answered", None) if draft.missing else ("answered", None)

    @staticmethod
    def _weak(rules: Policy) -> tuple[Outcome, Reason | None]:
        return ("human_followup", "low_confidence") if rules.low_confidence_to_human else ("low_confidence", None)

    def _may_clarify(self, turn: Turn) -> bool:
        topics = self._topics(turn)
        return (
            turn.evidence.adequacy >= self.clarify_from
            and len(turn.query.weights) <= self.clarify_words
            and len(topics) > 1
            # Asked back once, a visitor has had the choice; the second time it would be a dead end.
            and all(exchange.outcome != "clarify" for exchange in turn.history)
        )

    def _topics(self, turn: Turn) -> tuple[str, ...]:
        headings = (innermost(passage.heading) or passage.title for passage in turn.evidence.relevant_passages())
        return tuple(dict.fromkeys(filter(None, headings)))[: self.options]

    def _reply(self, turn: Turn, rules: Policy, articles: tuple[Article, ...]) -> Reply:
        draft = turn.best or turn.draft
        if turn.outcome in _SHOWN and draft:
            return replace(turn.reply, text=draft.text, notice=_notice(turn, draft))
        if turn.outcome == "clarify":
            options = self._topics(turn)
            question_back = text("outcomes.clarify.options", turn.locale)
            return Reply(question_back, clarification=options, articles=articles)
        notice = " ".join(rejections(draft, turn)) if turn.outcome in _WITH_ARTICLES else ""
        return Reply(
            _fixed_text(turn, articles), notice=notice or None, handoff=_handoff(turn, rules), articles=articles
        )


def _notice(turn: Turn, draft: Draft) -> str | None:
    notices = []
    if turn.outcome == "partially_answered":
        known = [code for code in draft.missing if code in turn.query.codes and code not in turn.evidence.uncovered]
        for key, topics in (("missing", [one for one in draft.missing if one not in known]), ("unmentioned", known)):
            if topics:
                notices.append(text(f"outcomes.partially_answered.{key}", turn.locale, topics=", ".join(topics)))
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


def _fixed_text(turn: Turn, articles: Sequence[Article]) -> str:
    """The most specific text available: by unknown code, by risk, by small talk, by reason, by outcome."""
    if articles:
        # Who is given something to read need not be told to ask elsewhere.
        reason = None if turn.reason in _ABSENT else turn.reason
        outcome_text = text(f"outcomes.{turn.outcome}.{reason or 'default'}", turn.locale)
        return f"{outcome_text} {text('outcomes.articles.' + ('one' if len(articles) == 1 else 'some'), turn.locale)}"
    unknown_codes = [code for code in turn.query.codes if code in turn.evidence.uncovered]
    if turn.outcome == "refused" and unknown_codes:
        return text("outcomes.refused.unknown_code", turn.locale, code=", ".join(unknown_codes))
    if turn.outcome == "high_stakes" and turn.risk != "none":
        return text(f"outcomes.high_stakes.{turn.risk}", turn.locale)
    if turn.intent == "chitchat" and turn.outcome == "irrelevant":
        return text("outcomes.irrelevant.chitchat", turn.locale)
    return text(f"outcomes.{turn.outcome}.{turn.reason or 'default'}", turn.locale)


def _handoff(turn: Turn, rules: Policy) -> Mapping[str, str] | None:
    """The offer that accompanies a handoff: only what the tenant has approved."""
    if turn.outcome not in ("high_stakes", "human_followup"):
        return None
    offer = rules.approved_offers.get(turn.risk, "")
    return {"channel": rules.handoff_channel, "offer": offer}
