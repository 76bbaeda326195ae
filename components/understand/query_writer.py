"""New search queries from a language model, asked for on a retry only."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from components.language.identifiers import codes, numbers
from components.models.chat import ChatModels
from components.models.prompts import block
from components.models.structured import Form, fill
from components.nested import Nested
from components.turn import Turn

_MAX_QUERY_LENGTH = 200
_MAX_PASSAGE_LENGTH = 600


@dataclass(frozen=True, slots=True)
class NewQueries:
    """What to search next: queries, best first, and a passage such as might hold the answer; empty when none."""

    queries: tuple[str, ...]
    passage: str = ""


class QueryWriter(Protocol):
    """Who thinks of queries. A pipeline author names the implementation in YAML as a nested component."""

    def write(self, turn: Turn) -> NewQueries:
        """New queries for what the turn's evidence leaves open."""


class QueriesForm(Form):
    """Search queries, and the passage that is looked for as it might be written."""

    queries: tuple[str, ...]
    passage: str


class LlmQueryWriter(Nested):
    """Asks a language model for queries in the words of a help article.

    A query, or a passage, with a code or a number that the question does not hold is left out: it would find another
    error or another tariff.

    :param models: the models asked, always the `fast` one.
    :param hyde: whether to write a passage such as the missing article might hold and search with it too
        (hypothetical document embeddings, Gao et al. 2022).
    :param max_queries: queries written at most.
    """

    def __init__(self, models: ChatModels, hyde: bool = False, max_queries: int = 3) -> None:
        self.models = models
        self.hyde = hyde
        self.max_queries = max_queries

    def write(self, turn: Turn) -> NewQueries:
        """New queries for what the turn's evidence leaves open.

        :raises ModelFailed: no model wrote any.
        """
        question = turn.query.search
        left_open = dict.fromkeys((*turn.evidence.missing, *(turn.best.missing if turn.best else ())))
        form = fill(
            QueriesForm,
            self.models,
            self.models.prompt("rewrite", turn.locale),
            values={
                "most": self.max_queries,
                "hyde": self.hyde,
                "question": block("question", question),
                "missing": block("missing", _listed(left_open)),
                "tried": block("tried", _listed(turn.query.searched_texts)),
            },
            step="rewrite",
            tier="fast",
        )
        queries = (" ".join(query.split()) for query in form.queries)
        usable = [query for query in queries if 0 < len(query) <= _MAX_QUERY_LENGTH and _adds_no_code(query, question)]
        passage = " ".join(form.passage.split())[:_MAX_PASSAGE_LENGTH] if self.hyde else ""
        return NewQueries(tuple(usable[: self.max_queries]), passage if _adds_no_code(passage, question) else "")


def _adds_no_code(text: str, question: str) -> bool:
    """Whether every code and number in what was written is one of the question's."""
    allowed = {*codes(question), *numbers(question, question)}
    return {*codes(text), *numbers(text, question)} <= allowed


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)
