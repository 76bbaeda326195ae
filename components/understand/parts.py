"""The questions that one message asks, and the sides that it compares."""

import re
from functools import lru_cache
from itertools import dropwhile, takewhile

from components.language.asking import ASKING, asks, opens_question
from components.language.identifiers import codes
from components.language.normalise import clean, fold
from components.language.sentences import sentence_spans
from components.language.words import Word, words
from components.understand.followup import addresses_company, named

_MAX_PARTS = 3
_MAX_WORDS = 40
"""Number of words above which a message is a story about one matter."""
_REACH = 3
"""Words after a conjunction among which a question word shows that another question begins."""
_JOINING = frozenset("и а and also or но but".split())
_NEGATING = frozenset("не нет нету not cannot cant wont doesnt dont isnt".split())
_CONTRACTED = re.compile(r"n['’]t\b", re.IGNORECASE)
"""Words of a statement that reports a problem, and the end of "can't"."""
_ENDS = re.compile(r"(?<=[?!])\s+(?=\w)")
"""The end of a question, whatever follows it: people go on without a capital letter, which sentence rules expect."""
_EXISTING = re.compile(r"\bесть\W*\Z", re.IGNORECASE)
"""The end of a question whether there is a thing."""
# A side begins and ends at a fixed place among quotation marks: otherwise, marks alone take cubic time.
_SIDE = r"[\s«\"“]*+(?P<{}>[^?!.;]*?[^?!.;\s»\"”])[\s»\"”]*"
_COMPARISONS = tuple(
    re.compile(pattern.format(a=_SIDE.format("a"), b=_SIDE.format("b")), re.IGNORECASE)
    for pattern in (
        r"\bчем\s+{a}\s+отлича\w+\s+от\s+{b}(?:[?!.;]|\Z)",
        r"\b(?:чем|в ч[её]м)\s+отлича\w+\s+{a}\s+(?:от|и)\s+{b}(?:[?!.;]|\Z)",
        r"\b(?:разниц\w*|отличи\w*|различи\w*)\s+(?:между\s+)?{a}\s+(?:и|от)\s+{b}(?:[?!.;]|\Z)",
        r"\bсравни\w*\s+{a}\s+(?:и|с|со)\s+{b}(?:[?!.;]|\Z)",
        r"\bчто\s+(?:лучше|выбрать|дешевле|дороже)[\s,:—-]+{a}\s+или\s+{b}(?:[?!.;]|\Z)",
        r"\A{a}\s+или\s+{b}[\s,:—-]+что\s+(?:лучше|выбрать|дешевле|дороже)",
        r"\bdifferen\w+\s+between\s+(?:the\s+)?{a}\s+and\s+(?:the\s+)?{b}(?:[?!.;]|\Z)",
        r"\bhow\s+(?:is|are|does|do)\s+(?:the\s+)?{a}\s+(?:different|differ)\s+from\s+(?:the\s+)?{b}(?:[?!.;]|\Z)",
        r"\bcompare\s+(?:the\s+)?{a}\s+(?:and|with|to)\s+(?:the\s+)?{b}(?:[?!.;]|\Z)",
        r"\b(?:which|what)\s+is\s+(?:better|cheaper)[\s,:—-]+(?:the\s+)?{a}\s+or\s+(?:the\s+)?{b}(?:[?!.;]|\Z)",
        r"\A(?:the\s+)?{a}\s+(?:vs\.?|versus)\s+(?:the\s+)?{b}(?:[?!.;]|\Z)",
    )
)


@lru_cache(maxsize=1_000)
def parts_of(question: str, *, with_references: bool = False) -> tuple[str, ...]:
    """Return the questions of a message in order, the two sides of a comparison, or a question for each listed code.

    Empty if there is only one.

    Each part names something: "and how long does it take?" stays with the question before it. A statement
    stays with the question beside it.

    :param with_references: a later question that names nothing is a part, too.

    ```python
    parts_of("How much is delivery and can I return a kettle?")  # ("How much is delivery", "can I return a kettle?")
    parts_of("What is the difference between E10 and E20?")  # ("E10", "E20")
    ```
    """
    text = clean(question).strip()
    if len(words(text)) > _MAX_WORDS:
        return ()
    if sides := _sides(text) or _by_code(text):
        return sides
    questions: list[str] = []
    waiting = ""
    for piece, is_cut in _clauses(text):
        clause = f"{waiting} {piece}".strip()
        waiting = ""
        goes_on = bool(questions) and fold(words(clause)[0].text) in _JOINING
        is_question = is_cut or asks(clause)
        refers = with_references and bool(questions) and is_question
        topical = named(clause) or (not questions and addresses_company(clause))
        if not (topical or refers) or not (goes_on or is_question):
            if questions and not named(clause):
                questions[-1] = f"{questions[-1]} {clause}"
            else:
                waiting = clause
            continue
        # "And can I return it?" leans on the question before it; "and can I return a kettle?" only follows it.
        questions.append(without_conjunction(clause) if goes_on and named(clause) and _asks_at_once(clause) else clause)
    if waiting and questions:
        questions[-1] = f"{questions[-1]} {waiting}"
    return tuple(questions) if 1 < len(questions) <= _MAX_PARTS else ()


def sides_of(question: str) -> tuple[str, ...]:
    """Return the two sides that a message compares; empty if it compares nothing."""
    text = clean(question).strip()
    return _sides(text) if len(words(text)) <= _MAX_WORDS else ()


def without_conjunction(part: str) -> str:
    """Return a part of a message without the conjunction that joins it to the part before."""
    found = words(part)
    if len(found) < 2 or fold(found[0].text) not in _JOINING:
        return part
    return part[found[1].start :]


def _sides(text: str) -> tuple[str, ...]:
    matches = (comparison.search(text) for comparison in _COMPARISONS)
    match = next(filter(None, matches), None)
    sides = (match["a"].strip(), match["b"].strip()) if match else ()
    # A question word in a side belongs to another question: "…E10 and E20 and which one is worse".
    return sides if ASKING.isdisjoint(fold(word.text) for side in sides for word in words(side)) else ()


def _by_code(text: str) -> tuple[str, ...]:
    """Return the question about each of the codes that a message lists: "what do E20 and E401 mean?"."""
    found = words(text)
    places = [place for place, word in enumerate(found) if codes(word.text)]
    between = found[places[0] : places[-1] + 1] if places else []
    if not 1 < len(places) <= _MAX_PARTS or any(not (codes(w.text) or fold(w.text) in _JOINING) for w in between):
        return ()
    before, after = text[: between[0].start], text[between[-1].end :]
    return tuple(f"{before}{found[place].text}{after}" for place in places)


def _clauses(text: str) -> list[tuple[str, bool]]:
    """Return the clauses of a text, and whether each is cut off before a conjunction that begins another question."""
    clauses = []
    for sentence in _sentences(text):
        found = words(sentence)
        begin = 0
        for place in range(1, len(found) - 1):
            if _begins_another(sentence, found, place):
                clauses.append((sentence[begin : found[place].start].strip(" ,;—–-"), True))
                begin = found[place + 1].start
        clauses.append((sentence[begin:], False))
    return [(clause, is_cut) for clause, is_cut in clauses if words(clause)]


def _sentences(text: str) -> list[str]:
    return [part for start, end in sentence_spans(text) for part in _ENDS.split(text[start:end])]


def _begins_another(sentence: str, found: list[Word], place: int) -> bool:
    """Return whether a question word follows the conjunction at a place, after a whole question or a problem."""
    if fold(found[place].text) not in _JOINING or fold(found[place - 1].text) in ASKING:
        return False
    before, after = sentence[: found[place].start], sentence[found[place].start :]
    # "It won't drain and what should I check?" is about one matter, "…and how do I change my email?" is not.
    is_whole = asks(before) or (_reports(before) and len(named(after)) > 1)
    # "И рассрочка есть?" asks, "если чек и коробка есть?" does not.
    has_thing = bool(_EXISTING.search(after)) and "если" not in {fold(word.text) for word in found[:place]}
    return is_whole and (_asks_at_once(after) or has_thing) and bool(named(before) or addresses_company(before))


def _asks_at_once(clause: str) -> bool:
    """Return whether a question word comes soon after the conjunction that a clause begins with."""
    after = (fold(word.text) for word in words(clause)[1:])
    following = list(takewhile(lambda word: word not in _JOINING, dropwhile(_JOINING.__contains__, after)))[:_REACH]
    return bool(following) and (opens_question(following[0]) or not ASKING.isdisjoint(following))


def _reports(clause: str) -> bool:
    """Return whether a clause reports a problem: "I can't log in"."""
    return bool(_CONTRACTED.search(clause)) or not _NEGATING.isdisjoint(fold(word.text) for word in words(clause))
