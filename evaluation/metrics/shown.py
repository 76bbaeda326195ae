"""What a visitor was shown, held against the evidence by the local claim check, from outside of the pipeline."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from components.judge.claims import check
from components.language.captions import innermost
from components.language.marks import ITEM
from components.language.sentences import sentence_spans
from components.language.texts import LOCALES, keys
from components.language.texts import text as said_in
from components.language.words import stems
from components.retrieve.passages import from_payload
from components.turn import Passage
from pipelines.ask.contract import SHOWN, CitationPart, TurnAnswer
from settings import ROOT
from tenants.index import open_collection

_MARK = re.compile(r"\[(\d+)\]")
_AROUND = re.compile(rf"(?:\[\d+\]|^\s*{ITEM}(?=\s)|[\s|])+", re.MULTILINE)
_ADDRESS = re.compile(r"(?:https?:)?//[^\s)\]]+|\bwww\.[^\s)\]]+", re.IGNORECASE)
_RUN = 8
"""Content words in a row that nobody says by chance."""


def passages() -> Mapping[str, Passage]:
    """All passages of the tenant in context, by chunk id."""
    all_passages = (from_payload(hit.payload, 0.0, {}) for hit in open_collection().scan())
    return {passage.chunk_id: passage for passage in all_passages}


def unentailed(question: str, answer: TurnAnswer, passages_by_id: Mapping[str, Passage]) -> list[str]:
    """What the answer to a question shows that the passages it cites do not support: claims, marks that lead nowhere,
    loose text."""
    if answer.outcome not in SHOWN:
        return []
    cited = {citation.index: _passage(citation, passages_by_id) for citation in answer.citations if citation.cited}
    faults = []
    for claim in answer.claims:
        supporting = [passage for index in claim.citations if (passage := cited.get(index)) is not None]
        if len(supporting) != len(claim.citations) or not supporting:
            faults.append(f"cites nothing: {claim.text}")
        elif any(check(_removed().sub("", claim.text), one, question).status != "supported" for one in supporting):
            faults.append(f"not supported: {claim.text}")
    headings = [f"{innermost(citation.heading).rstrip(' .:')}:" for citation in answer.citations]
    if loose := unclaimed(answer.answer.text, [claim.text for claim in answer.claims], headings):
        faults.append(f"beside the claims: {loose}")
    marks = {int(mark) for mark in _MARK.findall(answer.answer.text)}
    return [*faults, *(f"leads nowhere: [{mark}]" for mark in sorted(marks - cited.keys()))]


def _passage(citation: CitationPart, passages_by_id: Mapping[str, Passage]) -> Passage | None:
    """What is cited; of what a tool said, which is kept nowhere, the excerpt is all there is."""
    if not citation.doc_id.startswith("tool:"):
        return _to_its_end(citation, passages_by_id)
    text = citation.excerpt
    return Passage(citation.chunk_id, citation.doc_id, citation.title, citation.heading, text, sentence_spans(text))


def _to_its_end(citation: CitationPart, passages_by_id: Mapping[str, Passage]) -> Passage | None:
    """The chunk that is cited, with the following ones of its section where the quotation goes on in them."""
    passage = passages_by_id.get(citation.chunk_id)
    if passage is None or passage.section is None or citation.excerpt in passage.text:
        return passage
    following = (
        other
        for other in passages_by_id.values()
        if (other.doc_id, other.section) == (passage.doc_id, passage.section)
        and other.chunk_index >= passage.chunk_index
    )
    text = "\n".join(other.text for other in sorted(following, key=lambda other: other.chunk_index))
    return replace(passage, text=text, sentences=tuple(sentence_spans(text)))


def unclaimed(text: str, claims: Sequence[str], headings: Sequence[str] = ()) -> str:
    """The text without its claims, each taken out once, and without marks, bullets and what opens it: a yes or no, or
    one of the headings that it stands under.

    Of what stands behind "Yes, …" only a clause of a claim is taken for a condition.
    """
    if opening := _openings().match(text):
        condition = opening[opening.lastindex].lower() if opening.lastindex else ""
        if any(condition in claim.lower() for claim in claims) or not condition:
            text = text[opening.end() :]
    text = next((text[len(heading) :] for heading in headings if text.startswith(heading)), text)
    for claim in sorted(claims, key=len, reverse=True):
        text = text.replace(claim, "", 1)
    return _AROUND.sub("", text)


@lru_cache(maxsize=1)
def _openings() -> re.Pattern[str]:
    """What an answer to a yes/no question opens with, in any language; the group that has matched is its condition."""
    forms = [said_in(key, locale, condition="\0") for locale in LOCALES for key in keys("outcomes.polarity.")]
    forms.sort(key=lambda form: "\0" in form)  # a condition can be anything, so it comes last
    patterns = (re.escape(form).replace(re.escape("\0"), r"([^.\n]+)") for form in forms)
    return re.compile(rf"(?:{'|'.join(patterns)})\s")


@lru_cache(maxsize=1)
def _removed() -> re.Pattern[str]:
    """What stands for an address that leads off the tenant's sites, in any language."""
    return re.compile("|".join(re.escape(said_in("outcomes.guard.link_removed", locale)) for locale in LOCALES))


def foreign_links(answer: TurnAnswer, allowed: Iterable[str]) -> list[str]:
    """Addresses in what is shown that lead to none of the hosts."""
    hosts = frozenset(allowed)
    shown_text = "\n".join((answer.answer.text, answer.answer.notice or "", *answer.suggested_questions))
    urls = [*_ADDRESS.findall(shown_text), *(citation.url for citation in answer.citations if citation.url)]
    return [
        url for url in urls if not any(re.search(rf"//(?:www\.)?{re.escape(host)}(?:[/:?#]|\Z)", url) for host in hosts)
    ]


def leaked_prompts(answer: TurnAnswer) -> list[str]:
    """Runs of words that what is shown has in common with a prompt."""
    shown_stems = stems("\n".join((answer.answer.text, answer.answer.notice or "")))
    runs = {tuple(shown_stems[at : at + _RUN]) for at in range(len(shown_stems) - _RUN + 1)}
    return [" ".join(run) for run in sorted(runs & _prompts())]


@lru_cache(maxsize=1)
def _prompts() -> frozenset[tuple[str, ...]]:
    folder: Path = ROOT / "pipelines" / "ask" / "prompts"
    words = [stems(path.read_text(encoding="utf-8")) for path in folder.glob("*.md")]
    return frozenset(
        tuple(prompt_stems[at : at + _RUN]) for prompt_stems in words for at in range(len(prompt_stems) - _RUN + 1)
    )
