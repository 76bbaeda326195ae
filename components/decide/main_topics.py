"""Topics to offer to a customer who has not said what the matter is."""

from components.faults import degraded
from components.language.texts import keys, text
from components.passages import relevance, to_passage
from components.retrieve.probe import Probe
from components.serialisation import Nested

_REASONS = "outcomes.reasons."


class MainTopics(Nested):
    """The tenant's articles about what customers most often write about.

    Common reasons to write, such as delivery, are searched for. The title of the article that answers one best is a
    topic; a reason that no article answers has none.

    :param limit: most topics.
    :param threshold: minimum probability that an article answers.
    :param max_length: characters of a title above which it is no topic.
    """

    def __init__(self, limit: int = 4, threshold: float = 0.3, max_length: int = 60) -> None:
        self.limit = limit
        self.threshold = threshold
        self.max_length = max_length
        self._probe = Probe(by_words=True)

    def find(self, locale: str) -> tuple[str, ...]:
        """Return the topics, the most common reasons first; fewer if the search fails, and the turn is degraded."""
        titles: dict[str, None] = {}
        try:
            for key in keys(_REASONS):
                best = self._probe.best(text(key, locale))
                title = to_passage(best).title if best is not None and relevance(best) >= self.threshold else ""
                if 0 < len(title) <= self.max_length:
                    titles[title] = None
        except Exception as error:
            degraded("suggestions", error)
        return tuple(titles)[: self.limit]
