"""What bounds the steps that are shown: the conditions above them, and for whom or by which means their section is.

A procedure under a caption of its own ("In the app") is chosen without what its section says before all captions, and
there stands what must hold, cannot be undone or needs somebody's help.
"""

import re
from collections.abc import Collection, Sequence

from components.answer.section import Part, announces, blocks, steps
from components.answer.units import Unit, plain
from components.judge.answer_form import is_definition
from components.language.captions import innermost, is_question
from components.language.normalise import fold
from components.language.words import words

_MOST = 500
"""Characters of conditions above the steps: who asks for steps shall see them."""

_BOUND = re.compile(
    r"\A(?:\w+ )?(?:услови[яе]|требования)\b|"
    r"\b(?:нельзя|невозможн\w+|недоступн\w+|только|ограничен\w*|при условии|требует\w*|если|долж(?:ен|на|но|ны)|"
    r"обязательно|необратим\w*|потеря\w+|обратитесь|внимание|важно|учтите|убедитесь|перед (?:тем|началом)|"
    r"не (?:поддержива\w+|получится|предусмотрен\w*|сможете)|"
    r"only|cannot|must|unless|if|limit(?:ed|s|ations?)|requirements?|requires?|prerequisites?|warning|important|"
    r"irreversibl\w+|permanently|lost|before you|make sure|not (?:available|supported|possible))\b|n['’]t\b"
)
_QUALIFIED = re.compile(
    r"\b(?:для|при|через|с|со|без|из|под|for|when|if|with|without|via|using|from|in|on)\s+(.+)", re.IGNORECASE
)


def with_conditions(chosen: Sequence[Unit], section: Sequence[Part]) -> tuple[Unit, ...]:
    """The steps that are shown, below the paragraphs and lists of their section that say under which conditions."""
    if steps(chosen) < 2:
        return tuple(chosen)
    shown, heading = set(chosen), chosen[0].passage.heading
    above: list[Unit] = []
    for part in section:
        own = chosen[0] in part.with_caption
        if (part.caption is None and not part.states and _heading(part) == heading) or own:
            for block in blocks(part.units):
                if shown & set(block):
                    break
                if _bounds(block) and _size(above) + _size(block) <= _MOST:
                    above += block
        if own:
            return (*above, *chosen)
    return tuple(chosen)


def qualified(heading: str, question: Collection[str]) -> str:
    """The innermost heading where it says for whom, when or by which means, and the question does not; else empty."""
    last = innermost(heading).rstrip(" .:")
    match = _QUALIFIED.search(last)
    content = {word.stem for word in words(match[1]) if not word.stop} if match else set[str]()
    return last if content - set(question) and not is_question(last) else ""


def _heading(part: Part) -> str:
    return part.units[0].passage.heading if part.units else ""


def _bounds(block: Sequence[Unit]) -> bool:
    if (
        announces(block[-1])
        or steps(block)
        or is_definition(block[0].text)
        or any(unit.kind in ("code", "row", "heading") for unit in block)
    ):
        return False
    return bool(_BOUND.search(fold(" ".join(map(plain, block)))))


def _size(units: Sequence[Unit]) -> int:
    return sum(len(unit.text) for unit in units)
