"""The model's vocabulary, reduced to the subwords of Russian and English texts.

`tokenizers` needs 282 MB for all 250,000 pieces of the model, and 98 MB for these 110,000. A text of unaccented Latin
letters, Cyrillic letters of the Russian alphabet, digits and punctuation is split into the same pieces as before; other
letters become separate pieces or unknown.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any, TypeAlias

Piece: TypeAlias = tuple[str, float]
Json: TypeAlias = dict[str, Any]

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""The first pieces; the last one is `<mask>`."""

LENGTH = 256
"""Tokens that are read of a text: some 700 characters."""

_SPACE = "▁"
_RUSSIAN = frozenset("абвгдеёжзийклмнопрстуфхцчшщъыьэюя")
_ALONE = ("LATIN", "CYRILLIC", "GREEK")
"""Scripts whose other letters get a piece each: `é`, `ї`, `µ`."""

_FOREIGN = (
    "ARABIC", "ARMENIAN", "BENGALI", "CJK", "DEVANAGARI", "ETHIOPIC", "FULLWIDTH", "HALFWIDTH", "HEBREW", "IDEOGRAPHIC",
    "KATAKANA", "KHMER", "MYANMAR", "THAI", "TIBETAN",
)  # fmt: skip
"""Scripts whose punctuation and signs are not needed."""


def russian_and_english(pieces: Sequence[str]) -> list[int]:
    """Return the ids to keep, ascending, special ones included."""
    last = len(pieces) - 1
    return [number for number, piece in enumerate(pieces) if number < len(SPECIAL) or number == last or _useful(piece)]


def _useful(piece: str) -> bool:
    text = piece.strip(_SPACE)
    return all(_common(letter) or (len(text) == 1 and _is_kept_alone(letter)) for letter in text)


def _common(letter: str) -> bool:
    if letter.isascii() or letter.lower() in _RUSSIAN or letter == _SPACE:
        return True
    return unicodedata.category(letter)[0] in "PSZC" and not unicodedata.name(letter, "").startswith(_FOREIGN)


def _is_kept_alone(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_ALONE)


def own_tokenizer(vocabulary: Sequence[Piece]) -> Json:
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    words = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "always", "split": True}
    start, text, end = (
        {kind: {"id": name, "type_id": 0}}
        for kind, name in (("SpecialToken", "<s>"), ("Sequence", "A"), ("SpecialToken", "</s>"))
    )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKC"}, spaces]},
        "pre_tokenizer": words,
        "decoder": words,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, text, end],
            "pair": [start, text, end, end, {"Sequence": {"id": "B", "type_id": 0}}, end],
            "special_tokens": {
                name: {"id": name, "ids": [number], "tokens": [name]} for name, number in (("<s>", 0), ("</s>", 2))
            },
        },
        "model": {
            "type": "Unigram",
            "unk_id": 3,
            "byte_fallback": False,
            "vocab": [list(piece) for piece in vocabulary],
        },
    }


def pruned(tokenizer: Json, ids: Sequence[int]) -> Json:
    """Return the tokenizer with only these subwords, renumbered in order."""
    vocabulary = tokenizer["model"]["vocab"]
    pieces = [vocabulary[number] for number in ids]
    special = [*range(len(SPECIAL)), len(pieces) - 1]
    return {
        **tokenizer,
        "truncation": None,
        "padding": None,
        "model": {**tokenizer["model"], "vocab": pieces},
        "added_tokens": [
            {
                "id": number,
                "content": pieces[number][0],
                "single_word": False,
                "lstrip": number == special[-1],
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number in special
        ],
    }


def companions(columns: int) -> dict[str, Json]:
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    special: Json = {f"{kind}_token": name for kind, name in names.items()}
    return {
        "special_tokens_map.json": special,
        "tokenizer_config.json": {"model_max_length": LENGTH, "tokenizer_class": "XLMRobertaTokenizer"} | special,
        "config.json": {"model_type": "bert", "hidden_size": columns, "pad_token_id": 1},
    }
