"""New search queries from a language model, asked for on a retry only."""

from collections.abc import Iterable, Sequence

from components.language.identifiers import codes, numbers
from components.models.chat import ChatModels
from components.models.prompts import block
from components.models.structured import Form, fill
from components.serialisation import Nested

_MAX_QUERY_LENGTH = 200
_MAX_PASSAGE_LENGTH = 600


class QueriesForm(Form):
    """Search queries, and the passage that is looked for as it might be written."""

    queries: tuple[str, ...]
    passage: str


class LlmQueryWriter(Nested):
    """Ask a language model for queries in the words of a help article.

    A query or a passage with a code or a number that the question does not contain is left out: it would find another
    error or another tariff.

    :param models: the models asked, always the `fast` one.
    :param hyde: whether to also write a passage that the missing article might contain, and search with it
        (hypothetical document embeddings, Gao et al. 2022).
    :param max_queries: maximum number of queries written.
    """

    def __init__(self, models: ChatModels, hyde: bool = False, max_queries: int = 3) -> None:
        self.models = models
        self.hyde = hyde
        self.max_queries = max_queries

    def write(self, query: str, missing: Sequence[str], locale: str) -> list[str]:
        """Return new queries for what is missing, and a hypothetical passage if `hyde` is on.

        :raises ModelFailed: no model wrote any.
        """
        form = fill(
            QueriesForm,
            self.models,
            self.models.prompt("rewrite", locale),
            values={
                "most": self.max_queries,
                "hyde": self.hyde,
                "question": block("question", query),
                "missing": block("missing", _listed(missing)),
                "tried": block("tried", _listed([query])),
            },
            step="rewrite",
            tier="fast",
        )
        written = [(text, _MAX_QUERY_LENGTH) for text in form.queries[: self.max_queries]]
        if self.hyde:
            written.append((form.passage, _MAX_PASSAGE_LENGTH))
        lines = (" ".join(text.split())[:length] for text, length in written)
        return [line for line in lines if line and _adds_no_code(line, query)]


def _adds_no_code(text: str, question: str) -> bool:
    """Return whether every code and number in what was written is one of the question's."""
    allowed = {*codes(question), *numbers(question, question)}
    return {*codes(text), *numbers(text, question)} <= allowed


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)
