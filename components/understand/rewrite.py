"""The queries to search: the repaired question, and on a retry new queries for what is still uncovered."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from math import log

from haystack import component

from components.faults import degraded
from components.language.asking import to_the_point
from components.language.identifiers import codes_asked
from components.language.normalise import clean
from components.language.recovery import Recovered, recover, vocabulary_of
from components.language.words import stems, words
from components.retrieve.tools import ToolSearch
from components.turn import EXTRA_PASSES, Quality, Query, Turn, Verdict
from components.understand.query_writer import NewQueries, QueryWriter
from components.understand.synonyms import with_known_synonyms
from tenants import lexicon, policy
from tenants.index import open_collection
from tenants.lexicon import Lexicon

_PARTS = re.compile(r"[^\W\d_]+|\d+")


@component
class QueryRewriter:
    """Puts the search queries of the next pass into the turn, or reports that there is none.

    First pass: the point of the question (`components.language.asking`), repaired when its words are strange to the
    knowledge base (wrong keyboard layout, Latin letters, typing errors) and put into the tenant's synonyms for them;
    the words as typed are searched beside that. Later passes: up to `max_queries` new ones, never a repeat. Codes,
    amounts and names are never changed. A question that leans on the conversation is searched as it was meant, with
    less weight on what the conversation adds, and as typed.

    :param history_credit: share of its weight that a word from the conversation keeps.
    :param recovery: whether to repair questions.
    :param max_queries: most new queries a pass.
    :param min_open: share of the question's weight that must still be open for another pass.
    :param writer: a model that thinks of the queries of a retry. What is known to be missing and the open words of the
        question come after them.
    :param tools: what can be looked up elsewhere: a question that a tool may know is never hopeless.
    :param extra_passes: passes after the first one that both loops together may spend, by quality; those left out keep
        their default.
    """

    def __init__(
        self,
        recovery: bool = True,
        history_credit: float = 0.6,
        max_queries: int = 3,
        min_open: float = 0.25,
        writer: QueryWriter | None = None,
        tools: ToolSearch | None = None,
        extra_passes: Mapping[Quality, int] | None = None,
    ) -> None:
        self.recovery = recovery
        self.history_credit = history_credit
        self.max_queries = max_queries
        self.min_open = min_open
        self.writer = writer
        self.tools = tools
        self.extra_passes = {**EXTRA_PASSES, **(extra_passes or {})}
        if unknown := self.extra_passes.keys() - EXTRA_PASSES.keys():
            raise ValueError(f"no such quality: {', '.join(sorted(unknown))}; there are {', '.join(EXTRA_PASSES)}")

    @component.output_types(search=Turn, exhausted=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: `search` with queries to search, or `exhausted` when every query has been tried.

        A question all of whose codes are strange to the knowledge base is exhausted before the first search.
        """
        if turn.passes == 0:
            turn = replace(turn, extra_passes=self.extra_passes[turn.quality])
            query: Query | None = self._first(turn)
        else:
            turn, query = self._next(turn)
        absent = _absent_codes(query) if query is not None and turn.passes == 0 else ()
        if query is not None and absent and not self._can_look_up(replace(turn, query=query)):
            evidence = replace(turn.evidence, uncovered=absent)
            verdict = Verdict("human", ("code_not_found",))
            return {"exhausted": replace(turn, query=query, evidence=evidence, verdict=verdict)}
        if query is None:
            reasons = (*turn.verdict.reasons, "no_new_query")
            return {"exhausted": replace(turn, verdict=replace(turn.verdict, route="human", reasons=reasons))}
        return {"search": replace(turn, query=query, passes=turn.passes + 1)}

    def _can_look_up(self, turn: Turn) -> bool:
        return self.tools is not None and self.tools.may_answer(turn)

    def _first(self, turn: Turn) -> Query:
        terms = lexicon.current()
        typed = to_the_point(clean(turn.standalone_question or turn.question).strip())
        with_synonyms = with_known_synonyms(typed, policy.current().synonyms, terms.stems)
        recovered = recover(with_synonyms, vocabulary_of(terms.words, terms.stems)) if self.recovery else None
        search = recovered.text if recovered else with_synonyms
        also_searched = (
            typed,
            *(recovered.others if recovered else ()),
            *((turn.question,) if turn.standalone_question else ()),
        )
        variants = _distinct(also_searched, excluding={search})[: self.max_queries]
        search_stems = stems(search)
        return Query(
            search=search,
            variants=variants,
            recovery=recovered.kind if recovered else "none",
            weights={
                stem: rarity(terms, stem) * (self.history_credit if stem in turn.history_stems else 1.0)
                for stem in search_stems
            },
            doubtful=_doubtful(recovered, with_synonyms, search_stems),
            codes=codes_asked(search, terms.codes),
            searched_texts=(search, *variants),
        )

    def _next(self, turn: Turn) -> tuple[Turn, Query | None]:
        """The queries of a retry, None when there is no new one, and the turn, degraded when the writer failed."""
        new = NewQueries(())
        if self.writer is not None:
            try:
                new = self.writer.write(turn)
            except Exception as error:
                turn = degraded(turn, "rewriter", error)
        query = turn.query
        candidates = (*new.queries, *turn.evidence.missing, *self._open(turn))
        variants = _distinct(candidates, excluding=set(query.searched_texts))[: self.max_queries]
        if new.passage:
            variants += _distinct((new.passage,), excluding={*query.searched_texts, *variants})
        if not variants:
            return turn, None
        hyde = query.hyde or bool(new.passage)
        return turn, replace(query, variants=variants, searched_texts=query.searched_texts + variants, hyde=hyde)

    def _open(self, turn: Turn) -> list[str]:
        """Queries of the words that nothing found so far holds; none when they are too light to be worth a pass."""
        query = turn.query
        known_terms = lexicon.current()
        still_open = {stem for stem in turn.evidence.uncovered if stem in known_terms.stems}
        share = sum(query.weights.get(stem, 0.0) for stem in still_open)
        if share < self.min_open * sum(query.weights.values()):
            return []
        return _open_queries(query, still_open)


def _absent_codes(query: Query) -> tuple[str, ...]:
    """The question's codes when no passage can hold any of them, spelt as it is or in parts ("E-20").

    A code is cut into words as passages are, or a version such as V5.2 would count as absent where it stands.

    Only counts of all that can be searched tell what is absent. While the two differ, as during an ingest run, the
    search decides; an index that cannot be reached raises `TryAgain` here as it would there.
    """
    known = lexicon.current()
    spelt = ((code, " ".join(_PARTS.findall(code))) for code in query.codes)
    is_known = (any(all(stem in known.stems for stem in stems(form)) for form in forms) for forms in spelt)
    if not query.codes or any(is_known):
        return ()
    return query.codes if open_collection().count() == known.chunks else ()


def rarity(terms: Lexicon, stem: str) -> float:
    """Inverse document frequency of a stem over the tenant's chunks, the BM25 form, above 0."""
    containing = terms.stems.get(stem, 0)
    return log(1 + (terms.chunks - containing + 0.5) / (containing + 0.5))


def _doubtful(recovered: Recovered | None, typed: str, search_stems: Iterable[str]) -> frozenset[str]:
    # Only a corrected word is a guess; a repaired layout or alphabet spells the very keys that were pressed.
    if recovered is None or recovered.kind != "typo":
        return frozenset()
    return frozenset(search_stems) - frozenset(stems(typed))


def _open_queries(query: Query, still_open: Set[str]) -> list[str]:
    """The words that no passage found so far holds, alone and with the weightiest ones, which a long question drowns.

    None when the knowledge base holds none of them: searching for them again would find the same.
    """
    if not still_open:
        return []
    query_words = words(query.search)
    heavy = _heaviest(query.weights)
    alone = [word.text for word in query_words if word.stem in still_open]
    together = [word.text for word in query_words if word.stem in still_open or word.stem in heavy]
    return [" ".join(alone), " ".join(together)]


def _heaviest(weights: Mapping[str, float]) -> frozenset[str]:
    ranked = sorted(weights, key=lambda stem: -weights[stem])
    return frozenset(ranked[: (len(ranked) + 1) // 2])


def _distinct(texts: Iterable[str], *, excluding: set[str]) -> tuple[str, ...]:
    return tuple(text for text in dict.fromkeys(texts) if text not in excluding)
