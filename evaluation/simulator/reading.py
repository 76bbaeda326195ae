"""Parser of prompts: task, passages, question and claims, found by the fences that prompts put around them."""

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from components.language.identifiers import codes, numbers
from components.language.sentences import sentence_spans
from components.language.words import Families, families, stems
from evaluation.simulator.knobs import Task

_FENCE = re.compile(r'^<(\w+)(?: id="(\w+)")?>\n(.*?)\n</\1(?(2) id="\2")>$', re.DOTALL | re.MULTILINE)
_PASSAGE = re.compile(r"^\[(\d+)\][ \t]*(?:source|источник)?:?[ \t]*(.*)$", re.MULTILINE)
_DOCUMENT = re.compile(r"^Document (\d+):\ncontent: (.*)$", re.MULTILINE)
# Haystack's evaluators insert texts unquoted, and lists in Python syntax.
_EVALUATION = re.compile(
    r'\n\nInputs:\n\{"questions": (.*?), "contexts": (\[.*?\])(?:, "predicted_answers": (.*))?\}\nOutputs:\s*\Z',
    re.DOTALL,
)
_CLAIM = re.compile(r"^(\d+)\.[ \t]+(.*)$", re.MULTILINE)
_ARGUMENT = re.compile(r"^- (\w+)", re.MULTILINE)
_UNDERSTOOD = re.compile(r"\n\((.+)\)\Z")
_MESSAGE = re.compile(r"^- (.+)$", re.MULTILINE)
_CITED = re.compile(r"\[(\d+)\]")
_TASKS: Mapping[Task, frozenset[str]] = {
    "answer": frozenset({"covers"}),
    "proposals": frozenset({"proposals"}),
    "review": frozenset({"claims"}),
    "grade": frozenset({"passages", "adequacy"}),
    "evaluate": frozenset({"quality", "answerability"}),
    "rewrite": frozenset({"queries"}),
    "condense": frozenset({"question"}),
    "choose": frozenset({"tool"}),
    "rank": frozenset({"documents"}),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    stems: frozenset[str]
    facts: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A numbered passage of a prompt: `head` holds the stems of its source line, `stems` all of its stems."""

    number: int
    head: frozenset[str]
    sentences: tuple[Sentence, ...]
    stems: frozenset[str]
    facts: frozenset[str]
    families: Families


@dataclass(frozen=True, slots=True)
class Claim:
    number: int
    text: str
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """An offered tool: its description, and the names of its arguments."""

    name: str
    described: frozenset[str]
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A parsed call.

    `rejected` holds the approaches that no claim may suggest, `instructions` the system prompt, `example` its last
    example reply, `history` the customer's earlier messages, `full_text` the whole prompt.
    """

    task: Task
    question: str
    passages: tuple[Passage, ...]
    claims: tuple[Claim, ...]
    answer: str
    missing: tuple[str, ...]
    tools: tuple[Tool, ...]
    instructions: str
    full_text: str
    example: str = ""
    history: tuple[str, ...] = ()
    rejected: tuple[Claim, ...] = ()


def read(messages: Sequence[Mapping[str, object]], schema: Mapping[str, object] | None) -> Prompt:
    """Parse a chat request.

    :param messages: as the protocols have them, with `role` and `content`.
    :param schema: the JSON schema of the reply.
    """
    texts = [(str(message.get("role", "")), _text(message.get("content"))) for message in messages]
    all_text = "\n\n".join(text for _, text in texts)
    instructions = "\n\n".join(text for role, text in texts if role == "system")
    # Example turns contain blocks of the same names: the actual request follows them.
    fenced = next(
        (matches for role, text in reversed(texts) if role == "user" and (matches := _FENCE.findall(text))), []
    )
    blocks = {name: body for name, _, body in fenced}
    last_user_text = next((text for role, text in reversed(texts) if role == "user"), "")
    # A judge is always asked for JSON.
    if schema is not None and (evaluation := _EVALUATION.search(last_user_text)):
        return _evaluation(evaluation, instructions, all_text)
    return Prompt(
        task=_task(schema),
        question=_meant((blocks.get("question") or last_user_text.rsplit("\n\n", 1)[-1]).strip()),
        passages=_passages(blocks["passages"]) if "passages" in blocks else _passages(all_text, _DOCUMENT),
        claims=_claims(blocks.get("claims", "")),
        answer=blocks.get("answer", ""),
        missing=tuple(line.removeprefix("- ") for line in blocks.get("missing", "").splitlines()),
        tools=_tools(blocks.get("tools", "")),
        instructions=instructions,
        full_text=all_text,
        example=next((text for role, text in reversed(texts) if role == "assistant"), ""),
        history=tuple(_MESSAGE.findall(blocks.get("history", ""))),
        rejected=_claims(blocks.get("rejected", "")),
    )


def _meant(question: str) -> str:
    """Return the rewritten question, given in brackets below the customer's words if it differs."""
    understood = _UNDERSTOOD.search(question)
    return understood[1] if understood else question


def _evaluation(match: re.Match[str], instructions: str, all_text: str) -> Prompt:
    """Parse a prompt of Haystack's evaluators: claims are the sentences of the answer, and may use any context."""
    question, contexts, answer = match.groups()
    passages = tuple(_passage(number, "", text) for number, text in enumerate(literal_eval(contexts), 1))
    anywhere = tuple(passage.number for passage in passages)
    sentences = ((answer or "")[start:end] for start, end in sentence_spans(answer or ""))
    return Prompt(
        task="relevance" if answer is None else "faithfulness",
        question=question,
        passages=passages,
        claims=tuple(Claim(number, text, anywhere) for number, text in enumerate(sentences, 1)),
        answer=answer or "",
        missing=(),
        tools=(),
        instructions=instructions,
        full_text=all_text,
    )


@lru_cache(maxsize=4_000)
def sentence(text: str) -> Sentence:
    return Sentence(text, frozenset(stems(text)), frozenset((*numbers(text), *codes(text))))


def _task(schema: Mapping[str, object] | None) -> Task:
    if schema is None:
        return "answer"
    properties = schema.get("properties")
    names = set(properties) if isinstance(properties, Mapping) else set()
    return next((task for task, marks in _TASKS.items() if names & marks), "other")


def _text(content: object) -> str:
    """Return the text of a message: OpenAI's protocol allows a list of parts instead of a text."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")


@lru_cache(maxsize=500)
def _passages(block: str, pattern: re.Pattern[str] = _PASSAGE) -> tuple[Passage, ...]:
    matches = list(pattern.finditer(block))
    ends = (*(match.start() for match in matches[1:]), len(block))
    return tuple(
        _passage(int(match[1]), match[2], block[match.end() : ends[place]].strip())
        for place, match in enumerate(matches)
    )


@lru_cache(maxsize=2_000)
def _passage(number: int, source: str, text: str) -> Passage:
    sentences = tuple(sentence(text[start:end]) for start, end in sentence_spans(text))
    head = frozenset(stems(source))
    all_stems = head.union(*(one.stems for one in sentences))
    facts = frozenset[str]().union(*(one.facts for one in sentences))
    return Passage(number, head, sentences, all_stems, facts, families(all_stems))


def _tools(block: str) -> tuple[Tool, ...]:
    descriptions = (part.partition(":") for part in block.split("\n\n") if part)
    return tuple(
        Tool(name, frozenset(stems(text.partition("\n")[0])), tuple(_ARGUMENT.findall(text)))
        for name, _, text in descriptions
    )


def _claims(block: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(int(number), _CITED.sub("", text).strip(), tuple(map(int, _CITED.findall(text))))
        for number, text in _CLAIM.findall(block)
    )
