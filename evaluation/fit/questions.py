"""Graded questions of help centres, and questions of an encyclopaedia whose answers are there or are not."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.embed.dense import passage_text
from components.embed.fast import FastEmbedder
from components.judge.evidence import COSINE, EVIDENCE, measure
from components.judge.relevance import CANDIDATES
from components.language.words import all_words, analyse, stems
from components.turn import Passage, Query
from evaluation.datasets.rows import Row, objects, present, rows, sequence, string

VENDORS: Mapping[str, str] = {"yandexcloud": "yandexcloud/graded.jsonl", "microsoft": "microsoft/graded.jsonl"}
"""What is fitted on."""
UNSEEN: Mapping[str, str] = {"vkcloud": "vkcloud/dev/answers_ru.jsonl"}
"""What is measured on and never fitted."""
LANGUAGES = ("ru", "en")
"""Of XQuAD, the far end: questions close to the text, where most paragraphs have nothing to do with them."""
_FUSION = 20
_SATURATION = EVIDENCE.index("saturation")
_MIN_RATE = 0.002
_CYRILLIC, _LATIN = re.compile("[а-яё]"), re.compile("[a-z]")

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GradedQuestion:
    """A question with its candidates and which of them answer.

    `group` ties questions that no fold may part: those about one product or one article.
    """

    query: Query
    passages: tuple[Passage, ...]
    answers: tuple[bool, ...]
    group: str


class Encoder:
    """The encoder of the default profile, with what it computed kept in a file.

    :param embedder: of passages and questions.
    :param cache: where vectors are kept; None for nowhere.
    """

    def __init__(self, embedder: FastEmbedder, cache: Path | None = None) -> None:
        self._embedder, self._cache = embedder, cache
        self._vectors_by_key: dict[str, Vectors] = {}
        if cache is not None and cache.exists():
            with np.load(cache) as stored:
                self._vectors_by_key = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def questions(self, texts: Sequence[str]) -> Vectors:
        """The vectors of questions."""
        return self._vectors("question", texts, lambda new: [self._embedder.question(text) for text in new])

    def passages(self, passages: Sequence[Passage]) -> Vectors:
        """The vectors of passages."""
        texts = [passage_text(passage.title, passage.heading, passage.text) for passage in passages]
        return self._vectors("passage", texts, self._embedder.passages)

    def save(self) -> None:
        """Keep what is known."""
        if self._cache is not None:
            np.savez(
                self._cache,
                keys=np.array(list(self._vectors_by_key)),
                vectors=np.stack(list(self._vectors_by_key.values())),
            )

    def _vectors(
        self, kind: str, texts: Sequence[str], embed: Callable[[list[str]], Sequence[Sequence[float]]]
    ) -> Vectors:
        keys = [hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors_by_key}
        for key, vector in zip(new, embed(list(new.values())) if new else (), strict=True):
            self._vectors_by_key[key] = np.array(vector, np.float32)
        return np.stack([self._vectors_by_key[key] for key in keys])


class Rarity:
    """How rare each stem is among the passages of a knowledge base."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        documents = {stems_of(passage) for passage in passages}
        self._chunks = len(documents)
        self._holding = Counter(stem for document in documents for stem in document)

    def query(self, question: str) -> Query:
        """The question as it is searched."""
        return Query(question, weights={stem: self._weight(stem) for stem in stems(question)})

    def _weight(self, stem: str) -> float:
        holding = self._holding[stem]
        return log(1 + (self._chunks - holding + 0.5) / (holding + 0.5))


def stems_of(passage: Passage) -> frozenset[str]:
    """The stems of a passage, function words included."""
    return frozenset(analyse(word)[0] for word in all_words(passage_text(passage.title, passage.heading, passage.text)))


def function_words(russian: Iterable[Passage], english: Iterable[Passage]) -> dict[str, float]:
    """The weights of function words, by the share of passages of their language that hold them."""
    return _weights(russian, _CYRILLIC) | _weights(english, _LATIN)


def _weights(passages: Iterable[Passage], letters: re.Pattern[str]) -> dict[str, float]:
    documents = {stems_of(passage) for passage in passages}
    holding = Counter(stem for document in documents for stem in document if len(stem) > 1 and analyse(stem)[1])
    return {
        stem: round(log(1 / (n / len(documents) + _MIN_RATE)), 3)
        for stem, n in sorted(holding.items())
        if letters.match(stem)
    }


def graded(path: Path, encoder: Encoder) -> list[GradedQuestion]:
    """The questions of a vendor with the passages that were graded, a grade of 1 being a real part of an answer."""
    questions = rows(path)
    pools = [
        tuple(_passage(row, f"{n}-{place}") for place, row in enumerate(objects(row, "passages")))
        for n, row in enumerate(questions)
    ]
    rarity = Rarity(passage for pool in pools for passage in pool)
    question_vectors = encoder.questions([string(row, "question") for row in questions])
    passage_vectors = iter(encoder.passages([passage for pool in pools for passage in pool]))
    return [
        GradedQuestion(
            rarity.query(string(row, "question")),
            tuple(_with_cosine(passage, float(vector @ next(passage_vectors))) for passage in pool),
            tuple(int(str(row["grade"])) >= 1 for row in objects(row, "passages")),
            string(row, "product"),
        )
        for row, pool, vector in zip(questions, pools, question_vectors, strict=True)
    ]


def paragraphs(data: Path, language: str) -> list[Passage]:
    """The paragraphs of XQuAD."""
    return [
        Passage(string(row, "doc_id"), string(row, "doc_id"), "", "", string(row, "text"), (), lang=language)
        for row in rows(data / "xquad" / "corpus" / f"paragraphs_{language}.jsonl")
    ]


def encyclopaedia(data: Path, language: str, encoder: Encoder, weights: Mapping[str, float]) -> list[GradedQuestion]:
    """XQuAD questions with their best candidates, the listed articles withheld."""
    folder = data / "xquad"
    withheld = set(json.loads(present(folder / "dev" / "abstain_withhold_doc_ids.json").read_text(encoding="utf-8")))
    corpus = [paragraph for paragraph in paragraphs(data, language) if paragraph.doc_id not in withheld]
    questions = rows(folder / "dev" / f"questions_{language}.jsonl")
    rarity, vectors = Rarity(corpus), encoder.passages(corpus)
    graded_questions = []
    for row, vector in zip(questions, encoder.questions([string(row, "question") for row in questions]), strict=True):
        query = rarity.query(string(row, "question"))
        best = _fused(query, corpus, vectors @ vector, weights)
        gold = sequence(row, "gold_doc_ids")
        graded_questions.append(
            GradedQuestion(query, best, tuple(paragraph.doc_id in gold for paragraph in best), str(row["article_idx"]))
        )
    return graded_questions


def _fused(
    query: Query, corpus: Sequence[Passage], cosines: Vectors, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The best candidates by their ranks, by meaning and by words."""
    by_words = measure(query, corpus, weights)[:, _SATURATION]
    ranks = [np.argsort(np.argsort(-scores, kind="stable")) for scores in (cosines, by_words)]
    fused = sum(1 / (_FUSION + rank) for rank in ranks)
    return tuple(_with_cosine(corpus[place], float(cosines[place])) for place in np.argsort(-fused)[:CANDIDATES])


def _passage(row: Row, chunk_id: str) -> Passage:
    return Passage(
        chunk_id, string(row, "doc_id"), string(row, "title"), string(row, "heading"), string(row, "text"), ()
    )


def _with_cosine(passage: Passage, cosine: float) -> Passage:
    return replace(passage, scores={COSINE: cosine})
