"""How long a text is, in tokens, without any model's tokenizer."""

import re

_TOKEN = re.compile(r"\w{1,4}|[^\w\s]")


def count_tokens(text: str) -> int:
    """About how many tokens a multilingual subword tokenizer makes of `text`.

    Four characters of a word or one punctuation mark are a token. White space is free, so the count of texts joined by
    white space is the sum of their counts.
    """
    return len(_TOKEN.findall(text))
