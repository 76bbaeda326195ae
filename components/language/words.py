"""Words and their stems. Stemming is Snowball (Porter 2001): Russian for Cyrillic words, English for Latin ones."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from py_rust_stemmers import SnowballStemmer

from components.language.normalise import CYRILLIC_LOOKALIKES, LATIN_LOOKALIKES, fold

MAX_LENGTH = 64
"""Characters of the longest word. Longer runs of letters, such as encoded files, are many words: words are cached, and
200,000 of a thousand letters take gigabytes."""
_WORD = re.compile(rf"\d{{1,20}}(?:[.,]\d{{1,20}}){{1,9}}|[^\W_]{{1,{MAX_LENGTH}}}")
_CYRILLIC = re.compile("[а-яА-ЯёЁ]")
_LATIN = re.compile("[a-zA-Z]")
_LOOKALIKE_CODE = re.compile("[АВЕКМНОРСТУХаеорсухкA-Za-z]{1,4}[0-9]|[0-9]+[АВЕКМНОРСТУХаеорсухк]{1,2}\\Z")  # Е20, 1С
_RUSSIAN = SnowballStemmer("russian")
_ENGLISH = SnowballStemmer("english")

_FAMILY_PREFIX = 5
_FAMILY_SHARE = 0.7

Families: TypeAlias = Mapping[str, tuple[str, ...]]
"""Stems by their first five letters."""

# Function words carry no topic. "не", "нет", "без" and their English kin stay: they turn a sentence round.
STOP_WORDS = frozenset(
    """
    а и или но да же ли бы б то это этот эта эти этого этой этому этим этих тот та те того той тому тем тех том
    в во на с со к ко у о об обо от до из изо за по под над при про для через между перед около как так что чтобы
    кто где когда куда откуда почему зачем сколько скольки скольких скольким
    сколькими какой какая какое какие какого какому каким каком каких какую
    какими какова каков каково каковы который которая которое которые которого которой которому которым которых
    которую котором которыми чей чья чье чьи чего чему чем ком кого кому кем я мы ты вы он она оно они мне меня мной
    нам нас нами тебе тебя вам вас вами ему его него ей ее нее им их них ими себя себе собой свой своя свое свои
    своего своей своих своему своим свою мой моя мое мои моего моей моих моему моим мою наш наша наше наши нашего
    нашей ваш ваша ваше ваши вашего вашей ваших быть есть был была было были будет будут буду является являются
    являлся являлась являлось если то тогда там тут здесь вот уже еще только лишь даже также тоже ведь раз можно
    нужно надо либо нибудь сам сама само сами весь вся все всех всего всей всем всеми после потом ну пожалуйста
    подскажите скажите здравствуйте привет the a an and or but of to in on at by for from with as is are was were
    be been being am do does did done have has had having it its this that these those there here i you he she we
    they me him her us them my your his our their mine yours what which who whom whose when where why how can could
    will would shall should may might must if then than so such into about over under after before between during
    while also just only very please hi hello
    """.split()
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its characters as written, its offsets, its stem, and whether it is a function word."""

    text: str
    start: int
    end: int
    stem: str
    stop: bool


@lru_cache(maxsize=200_000)
def analyse(word: str) -> tuple[str, bool]:
    """Return the stem of a word, and whether it is a function word. Cached: a language reuses its words."""
    word = one_script(word)
    folded = fold(word)
    if folded in STOP_WORDS:
        return folded, True
    if any(char.isdigit() for char in folded):
        return folded.replace(",", "."), False
    stemmer = _RUSSIAN if _CYRILLIC.search(folded) else _ENGLISH
    return stemmer.stem_word(folded) or folded, False


def one_script(word: str) -> str:
    """Return a word that mixes Cyrillic and Latin look-alikes, in the script that it means; a code in Latin."""
    if _LOOKALIKE_CODE.match(word):
        return word.translate(CYRILLIC_LOOKALIKES)
    if word.isascii() or not (_CYRILLIC.search(word) and _LATIN.search(word)):
        return word
    cyrillic, latin = word.translate(LATIN_LOOKALIKES), word.translate(CYRILLIC_LOOKALIKES)
    if not _LATIN.search(cyrillic):
        return cyrillic
    return latin if not _CYRILLIC.search(latin) else word


def words(text: str) -> list[Word]:
    """Return every word of `text` in order. Parts of a hyphenated word are words; `10.5` is one."""
    result = []
    for match in _WORD.finditer(text):
        stem, stop = analyse(match.group())
        result.append(Word(match.group(), match.start(), match.end(), stem, stop))
    return result


def all_words(text: str) -> list[str]:
    """Return every word of `text` in order as written."""
    return _WORD.findall(text)


def stems(text: str) -> list[str]:
    """Return the content stems of `text` in order, function words left out."""
    analysed = (analyse(word) for word in _WORD.findall(text))
    return [stem for stem, stop in analysed if not stop]


def content_terms(texts: Iterable[Iterable[str]]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the distinct content stems, and the distinct content words folded, of texts given as their words."""
    distinct = {word for text_words in texts for word in text_words}
    terms = {terms for terms in map(_terms, distinct) if terms is not None}
    return frozenset(stem for stem, _ in terms), frozenset(word for _, word in terms)


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, str] | None:
    """Return the stem of a content word, and the word folded; None for a function word."""
    stem, stop = analyse(word)
    return None if stop else (stem, fold(word))


def families(stems: Iterable[str]) -> Families:
    """Return `stems` by their first five letters, shorter ones left out: they have no relatives."""
    stems_by_prefix: dict[str, list[str]] = {}
    for stem in stems:
        if len(stem) >= _FAMILY_PREFIX:
            stems_by_prefix.setdefault(stem[:_FAMILY_PREFIX], []).append(stem)
    return {prefix: tuple(members) for prefix, members in stems_by_prefix.items()}


def relatives(stem: str, among: Families) -> frozenset[str]:
    """Return stems that look derived from the same word, such as "подключ" and "подключен".

    They share five letters at the start, and 70% of the longer one. Stemming keeps them apart.
    """
    return frozenset(other for other in among.get(stem[:_FAMILY_PREFIX], ()) if _alike(stem, other))


def _alike(stem: str, other: str) -> bool:
    common = 0
    for letter, other_letter in zip(stem, other, strict=False):
        if letter != other_letter:
            break
        common += 1
    return common / max(len(stem), len(other)) >= _FAMILY_SHARE
