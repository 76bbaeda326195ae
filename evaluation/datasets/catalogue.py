"""Catalogue of data sets by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from components.language.texts import LOCALES
from evaluation.cases import QuestionSet, Skipped
from evaluation.datasets.answer_keys import graded_answers, vkcloud_answers
from evaluation.datasets.fixture import dialogues, fixture, near_miss_codes
from evaluation.datasets.noise import transliterated, typos, wrong_layout
from evaluation.datasets.public import techqa, vkcloud, wixqa, xquad
from evaluation.datasets.rows import DATA, MissingData

READERS: Mapping[str, Mapping[str, Callable[[Path], Sequence[QuestionSet]]]] = {
    "answers": {
        "vkcloud-answers": vkcloud_answers,
        "yandexcloud-answers": partial(graded_answers, vendor="yandexcloud"),
        "microsoft-answers": partial(graded_answers, vendor="microsoft"),
    },
    "vkcloud": {f"vkcloud-{language}": partial(vkcloud, language=language) for language in ("ru", "en")},
    "xquad": {f"xquad-{language}": partial(xquad, language=language) for language in ("ru", "en")},
    "techqa": {"techqa": techqa},
    "wixqa": {"wixqa": wixqa},
}
"""Reader of each public data set, by the name of each part that can be absent separately."""

_NOISE: Mapping[str, Callable[[str, int], str]] = {
    "1-typo": lambda question, seed: typos(question, 1, seed),
    "2-typos": lambda question, seed: typos(question, 2, seed),
    "layout": lambda question, _: wrong_layout(question),
    "transliteration": transliterated,
}


def chosen_sets(name: str, data: Path) -> Iterator[QuestionSet | Skipped]:
    """Yield the sets of one name, each followed by its noisy variants; an absent one comes as `Skipped`."""
    if name == "fixture":
        yield fixture()
    elif name == "codes":
        yield near_miss_codes()
    elif name == "dialogues":
        yield from map(dialogues, LOCALES)
    else:
        for part, read in READERS[name].items():
            try:
                sets = read(data)
            except MissingData as absent:
                yield Skipped(part, absent.path)
                continue
            for question_set in sets:
                yield question_set
                if question_set.name == "vkcloud-ru":
                    yield from _noisy(question_set)


def _noisy(clean: QuestionSet) -> Iterator[QuestionSet]:
    """Yield the questions with an article as if typed in haste."""
    cases = [case for case in clean.cases if case.gold_docs]
    for noise, spoil in _NOISE.items():
        spoilt = tuple(replace(case, question=spoil(case.question, seed)) for seed, case in enumerate(cases))
        yield QuestionSet(f"{clean.name}+{noise}", clean.corpus, spoilt)


def largest_set() -> QuestionSet:
    try:
        return vkcloud(DATA, "ru")[0]
    except MissingData:
        shop = fixture()
        return QuestionSet(shop.name, shop.corpus, (*shop.cases, *near_miss_codes().cases))
