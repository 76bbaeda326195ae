"""Topics to offer to a customer who has not said what the matter is."""

from components.faults import degraded
from components.language.captions import innermost
from components.language.texts import keys, text
from components.passages import relevance, to_passage
from components.retrieve.probe import Probe
from components.serialisation import Nested
from components.turn import Passage

_REASONS = "outcomes.reasons."


class MainTopics(Nested):
    """The tenant's articles about what customers most often write about.

    Common reasons to write, such as delivery, are searched for. The title of the article that answers one best is a
    topic; a reason that no article answers has none. A chosen topic is asked in these words. If the title is too short
    for an answer ("Payment"), the topic is the first section of the article that has one ("How you can pay").

    :param limit: most topics.
    :param threshold: minimum probability that an article answers.
    :param answered_from: minimum probability that a topic is answered when it is asked.
    :param max_length: characters of a title above which it is no topic.
    """

    def __init__(
        self, limit: int = 4, threshold: float = 0.3, answered_from: float = 0.45, max_length: int = 60
    ) -> None:
        self.limit = limit
        self.threshold = threshold
        self.answered_from = answered_from
        self.max_length = max_length
        self._probe = Probe(by_words=True)
        self._asked = Probe(top_k=20)  # as many as the pipeline compares

    def find(self, locale: str) -> tuple[str, ...]:
        """Return the topics, the most common reasons first; fewer if the search fails, and the turn is degraded."""
        topics: dict[str, None] = {}
        try:
            for key in keys(_REASONS):
                best = self._probe.best(text(key, locale))
                topic = self._topic(to_passage(best)) if best is not None and relevance(best) >= self.threshold else ""
                if 0 < len(topic) <= self.max_length:
                    topics[topic] = None
        except Exception as error:
            degraded("suggestions", error)
        return tuple(topics)[: self.limit]

    def _topic(self, passage: Passage) -> str:
        if self._asked.probability(passage.title) >= self.answered_from:
            return passage.title
        found = (to_passage(document) for document in self._asked.ranked(passage.title))
        sections = sorted((one for one in found if one.doc_id == passage.doc_id), key=lambda one: one.chunk_index)
        headings = (heading for one in sections if (heading := innermost(one.heading)))
        answered = (heading for heading in headings if self._asked.probability(heading) >= self.answered_from)
        return next(answered, passage.title)
