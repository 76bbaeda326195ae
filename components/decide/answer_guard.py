"""Output guard: the last check of an answer, the same for quoted and for generated text.

The threat: a passage or a question that makes a language model say what the knowledge base does not, send the reader to
a foreign site, load a picture whose address carries data away, or repeat its instructions; and a model that by
itself invents a telephone number or changes the language. So every answer must follow four rules:

- links lead to the domains that the tenant allows; a tenant that names none allows the domains of the answer's sources
  and each address that a document spells out which the sentence cites;
- personal data are shown only if they occur in the conversation or in quotable sentences of the evidence;
- nothing of a prompt is repeated;
- a sentence is in the language of the conversation or of its evidence.

A placeholder replaces a forbidden link or number. A sentence that breaks one of the last two rules is dropped; if no
sentence is left, there is no answer.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from components.answer.drafts import rendered
from components.decide.instructions import repeats_instructions
from components.language.links import addresses, host_of, leads_to, rearmed, without_links
from components.language.normalise import fold
from components.language.personal import mask_news
from components.language.texts import text as said_in
from components.models.prompts import FOLDER
from components.serialisation import Nested
from components.turn import Article, Citation, Claim, Draft, Passage, Reply, Turn
from tenants.accounts.policy import Policy
from tenants.knowledge.tools import ORIGIN

_AROUND = re.compile(r"\A(?:[-*•]|\d+[.)])\s+|(?:\s*\[\d+\])+\s*\Z")
_NO_LANGUAGE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\S+(?://|\[//\])\S+", re.DOTALL)
_BETWEEN_LETTERS = re.compile(r"[\W\d_]+")
_BETWEEN_LETTERS_OF = {"ru": re.compile("[^а-яёА-ЯЁ]+"), "en": re.compile("[^a-zA-Z]+")}
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u052f\u1e00-\u1fff\u2000-\u2bff]")
"""A letter that is neither Latin, Greek nor Cyrillic."""
RULES = ("links", "personal_data", "instructions", "language")


class AnswerRules(Nested):
    """Rules for the answers of a pipeline; all apply unless listed in `allow`.

    :param allow: rules that are not applied (`links`, `personal_data`, `instructions`, `language`).
    :param few_letters: a sentence with fewer letters may be a name, a command or a code, and its language is not
        checked.
    :param prompts: the folder of the prompts that answers must not repeat, inside the folder of pipelines.
    """

    def __init__(self, allow: list[str] | None = None, few_letters: int = 16, prompts: str = FOLDER) -> None:
        self.allow = allow or []
        self.prompts = prompts
        self.few_letters = few_letters
        if unknown := set(self.allow) - set(RULES):
            raise ValueError(f"no such rules: {sorted(unknown)}; there are {', '.join(RULES)}")


_ALL = AnswerRules()


class AnswerGuard:
    """Checks what one turn is about to say.

    :param turn: the turn with all of its evidence.
    :param rules: the tenant's policy.
    :param applied: the pipeline's rules.
    """

    def __init__(self, turn: Turn, rules: Policy, applied: AnswerRules = _ALL) -> None:
        self._turn = turn
        self._rules = rules
        self._applied = applied
        self._noted: dict[str, None] = {}
        self._spelt_out: frozenset[str] = frozenset()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the kinds of changes made so far as stable ASCII codes for traces and operators."""
        return tuple(self._noted)

    def text(self, text: str, linked_to: Container[str] = frozenset()) -> str:
        """Return the text without foreign links and without personal data that the conversation and evidence lack.

        :param linked_to: addresses that may be linked to, whatever their domain.
        """
        linked = self._linked_text(text, linked_to)
        masked = self._masked(linked)
        self._note("link_removed", when=linked != text)
        self._note("personal_data_masked", when=masked != linked)
        return masked

    def sentence(self, sentence: str, linked_to: Container[str] = frozenset()) -> str:
        """Return a sentence of an answer as it may be shown; empty if it may not."""
        repeated, foreign = self.repeats_instructions(sentence), self._is_foreign(sentence)
        self._note("instructions_withheld", when=repeated)
        self._note("foreign_language", when=foreign)
        return "" if repeated or foreign else self.text(sentence, linked_to)

    def repeats_instructions(self, text: str) -> bool:
        """Return whether a text says what only a prompt would."""
        return self._holds("instructions") and repeats_instructions(text, self._applied.prompts)

    def draft(self, draft: Draft) -> Draft:
        """Return the draft as it may be shown; without claims when nothing of it may."""
        citations = tuple(map(self._citation, draft.citations))
        if self._is_sound(draft):
            return draft if citations == draft.citations else replace(draft, citations=citations)
        spelt_out = {citation.index: self._addresses(citation) for citation in draft.citations}
        self._spelt_out = frozenset[str]().union(*spelt_out.values())
        claims = tuple(self._claims(draft, spelt_out))
        return replace(draft, text=rendered(claims, grouped=draft.quoted), claims=claims, citations=citations)

    def reply(self, reply: Reply) -> Reply:
        """Apply the rules to the texts shown beside or instead of an answer, and once more to that of its draft."""
        reply = replace(reply, articles=self._articles(reply.articles))
        full_text = "\n".join((reply.text, reply.notice or "", *(reply.clarification or ()), *reply.suggestions))
        if self._is_clean(full_text):
            return reply
        return replace(
            reply,
            text=self.text(reply.text, self._spelt_out),
            notice=self.text(reply.notice) if reply.notice else None,
            clarification=tuple(map(self.text, reply.clarification)) if reply.clarification else None,
            suggestions=tuple(map(self.text, reply.suggestions)),
        )

    def _note(self, reason: str, *, when: bool) -> None:
        if when:
            self._noted[reason] = None

    def _is_sound(self, draft: Draft) -> bool:
        """Return whether no rule is broken anywhere: looked for in one text, which takes a tenth of the time."""
        parts = (part for claim in draft.claims for part in (claim.text, claim.quote) if part not in draft.text)
        full_text = "\n".join((draft.text, *parts))
        if self.repeats_instructions(full_text) or any(self._is_foreign(claim.text) for claim in draft.claims):
            return False
        return self._is_clean(full_text)

    def _is_clean(self, text: str) -> bool:
        return self._masked(self._linked_text(text)) == text

    def _linked_text(self, text: str, linked_to: Container[str] = frozenset()) -> str:
        """Return the text without foreign links; pictures come from own domains alone."""
        if not self._holds("links"):
            return text

        def is_welcome(address: str) -> bool:
            return address in linked_to or self._is_own(address)

        return without_links(text, is_welcome, self._is_known, self._instead, self._is_own)

    def _masked(self, text: str) -> str:
        """Return the text without personal data that the conversation and the evidence lack."""
        return mask_news(text, lambda: self._known_text) if self._holds("personal_data") else text

    def _claims(self, draft: Draft, spelt_out: Mapping[int, frozenset[str]]) -> Iterator[Claim]:
        for claim in draft.claims:
            linked_to = frozenset[str]().union(*(spelt_out.get(number, ()) for number in claim.citations))
            if allowed := self.sentence(claim.text, linked_to):
                yield replace(claim, text=allowed, quote=self.text(claim.quote, linked_to))

    def _addresses(self, citation: Citation) -> frozenset[str]:
        """Return the addresses that a sentence may link to because the document that it cites spells them out.

        Threat: a model makes a link up, or puts data into one. Text from a tool is not a document of the tenant.
        """
        passage = citation.passage
        if self._rules.allowed_domains or passage.doc_id.startswith(ORIGIN):
            return frozenset()
        return addresses("\n".join(passage.text[start:end] for start, end in passage.sentences))

    def _citation(self, citation: Citation) -> Citation:
        return replace(citation, passage=self._linked(citation.passage))

    def _articles(self, articles: Sequence[Article]) -> tuple[Article, ...]:
        """Return the articles as they may be shown. Each may say what any of them, or the evidence, holds."""
        evidence = self._turn.evidence
        passages = (*evidence.passages, *(article.passage for article in articles))
        guard = AnswerGuard(
            replace(self._turn, evidence=replace(evidence, passages=passages)), self._rules, self._applied
        )
        shown = tuple(map(guard._article, articles))
        self._noted.update(guard._noted)
        return shown

    def _article(self, article: Article) -> Article:
        snippet = self.sentence(article.snippet) if article.snippet else ""
        return replace(article, passage=self._linked(article.passage), snippet=snippet)

    def _linked(self, passage: Passage) -> Passage:
        """Return the passage without its address where an answer may not link to it."""
        if passage.url is None or not self._holds("links") or shown_link(passage.url, self._rules):
            return passage
        self._note("link_removed", when=True)
        return replace(passage, url=None)

    def _is_own(self, address: str) -> bool:
        return leads_to(address, self._domains)

    def _instead(self, address: str) -> str:
        """Return the placeholder for an address, which names the article if the link is in one."""
        kind = "link_in_article" if address in self._quotable_text else "link_removed"
        return said_in(f"outcomes.guard.{kind}", self._turn.locale)

    def _is_known(self, name: str) -> bool:
        return name.casefold() in self._known_text.casefold()

    @cached_property
    def _domains(self) -> frozenset[str]:
        if self._rules.allowed_domains:
            return _domains(self._rules)
        hosts = (host_of(passage.url) for passage in self._evidence() if passage.url)
        return frozenset(filter(None, hosts))

    @cached_property
    def _quotable_text(self) -> str:
        """Return what may be quoted of the evidence. An order in a passage is not of it."""
        parts: list[str] = []
        for passage in self._evidence():
            parts += [passage.title, passage.heading, *(passage.text[start:end] for start, end in passage.sentences)]
        return "\n".join(parts)

    @cached_property
    def _known_text(self) -> str:
        """Return the conversation and what may be quoted of the evidence."""
        turn = self._turn
        parts = [turn.question, turn.standalone_question, *(exchange.question for exchange in turn.history)]
        parts.append(self._quotable_text)
        for approach in turn.rejected:
            parts += [approach.text, approach.reason]
        return "\n".join(parts)

    def _evidence(self) -> Iterator[Passage]:
        yield from self._turn.evidence.passages
        # A section is quoted completely, including parts that no search found.
        draft = self._turn.draft
        yield from (citation.passage for citation in draft.citations) if draft else ()
        yield from (related.passage for related in self._turn.evidence.related)

    def _holds(self, rule: str) -> bool:
        return rule not in self._applied.allow

    def _is_foreign(self, sentence: str) -> bool:
        if not self._holds("language"):
            return False
        # Some models slip into Chinese in the middle of a sentence.
        if any(letter not in self._known_text for letter in _OTHER_SCRIPT.findall(sentence)):
            return True
        if self._written_in(sentence) in (None, self._turn.locale):
            return False
        # The draft's last check meets the addresses that were disarmed in the sentences that it was made of.
        if fold(rearmed(_AROUND.sub("", sentence.strip()))).strip() in fold(self._known_text):
            return False
        texts = (self._turn.question, *(passage.text for passage in self._turn.evidence.relevant_passages()))
        return self._written_in(sentence) not in {self._written_in(text) for text in texts}

    def _written_in(self, text: str) -> str | None:
        """Return the locale whose letters most of a text is written in, `other` for other letters; None for too few.

        Code and addresses have no language: a step may hold a command that is longer than its own words.
        """
        letters = _BETWEEN_LETTERS.sub("", _NO_LANGUAGE.sub("", text))
        if len(letters) < self._applied.few_letters:
            return None
        for locale, between in _BETWEEN_LETTERS_OF.items():
            if 2 * len(between.sub("", letters)) >= len(letters):
                return locale
        return "other"


def shown_link(url: str | None, rules: Policy) -> str | None:
    """Return the address of a source, when an answer may link to it."""
    if url is None or host_of(url) is None:
        return None
    return url if not rules.allowed_domains or leads_to(url, _domains(rules)) else None


def _domains(rules: Policy) -> frozenset[str]:
    return frozenset(domain.removeprefix("www.") for domain in rules.allowed_domains)
