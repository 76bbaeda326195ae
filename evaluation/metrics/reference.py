"""The yardstick: plain BM25 over stems, on the very chunks that the product searches, and its best covering sentence.

Robertson & Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), with the usual k1 and b.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from components.language.words import stems
from components.turn import Passage

K1 = 1.2
B = 0.75


class Reference:
    """BM25 over chunks, with their titles and headings; a document counts as its best chunk."""

    def __init__(self, chunks: Iterable[Passage]) -> None:
        self.chunks = list(chunks)
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        for position, chunk in enumerate(self.chunks):
            counts = Counter(stems(f"{chunk.title} {chunk.heading} {chunk.text}"))
            self._lengths.append(sum(counts.values()))
            for stem, count in counts.items():
                self._postings[stem].append((position, count))
        self._average = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    def idf(self, stem: str) -> float:
        frequency = len(self._postings.get(stem, ()))
        return math.log(1 + (len(self.chunks) - frequency + 0.5) / (frequency + 0.5))

    def ranked_chunks(self, question: str) -> list[int]:
        """Return the positions of the chunks that share a stem with the question, best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for stem in set(stems(question)):
            weight = self.idf(stem)
            for position, count in self._postings.get(stem, ()):
                length = 1 - B + B * self._lengths[position] / self._average
                scores[position] += weight * count * (K1 + 1) / (count + K1 * length)
        return sorted(scores, key=lambda position: (-scores[position], position))

    def ranked(self, question: str, limit: int = 20) -> tuple[str, ...]:
        documents = dict.fromkeys(self.chunks[position].doc_id for position in self.ranked_chunks(question))
        return tuple(documents)[:limit]

    def best_sentence(self, question: str, depth: int = 10) -> tuple[str, float]:
        """Return the sentence of the best `depth` chunks that covers most of the question, and the weighted share."""
        weights: Mapping[str, float] = {stem: self.idf(stem) for stem in stems(question)}
        total = sum(weights.values()) or 1.0
        best, best_share = "", 0.0
        for position in self.ranked_chunks(question)[:depth]:
            chunk = self.chunks[position]
            for start, end in chunk.sentences:
                sentence = chunk.text[start:end]
                share = sum(weights.get(stem, 0.0) for stem in set(stems(sentence))) / total
                if share > best_share:
                    best, best_share = sentence, share
        return best, best_share
