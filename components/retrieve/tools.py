"""Tools look up what the tenant's passages do not contain: an order's state, today's tariff.

A tool is chosen and its arguments are read from the question without a model: its description must cover most of the
question, and every required argument must occur in it in the form of its schema. When no tool matches, a model may
choose. The answer is a passage like any other: it is scored, quoted, cited and checked, and orders to the assistant in
it are not quoted.

The threat: an address that leads into the installation's own network, an endless answer, a tool or a resolver that
hangs, a secret that shows up in an answer. Addresses are checked as those of web pages are (`components.ingest.fetch`),
size and time are bounded, a tool that keeps failing is paused, and its headers are sent to no other host.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any

from haystack import Document, component

from components.faults import degraded, is_degraded
from components.ingest.fetch import Fetcher, is_permitted
from components.ingest.safety import inert
from components.judge.approaches import coverage
from components.judge.relevance import judge
from components.judge.terms import read_query
from components.language.injection import orders
from components.language.normalise import clean
from components.language.sentences import sentence_spans
from components.language.words import stems
from components.models.attempts import attempt as attempt_call
from components.models.breaker import upstream
from components.models.failures import ModelFailed
from components.passages import SEARCH, Chunk, relevance, to_passage, with_meta
from components.retrieve.tool_arguments import Lookup, extract_arguments, is_part
from components.retrieve.tool_chooser import LlmToolChooser
from components.serialisation import Nested
from components.turn import Frozen, Query
from settings import get_settings
from tenants.core import context
from tenants.core.errors import OporaError
from tenants.core.json import Json
from tenants.knowledge import tools
from tenants.knowledge.tools import ORIGIN, Tool

STEP = "tools"
"""Name of the step in degraded turns after a tool has failed."""

_MAX_BYTES = 100_000
_MAX_LENGTH = 4_000
_MAX_LINES = 50
_FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True)
class Trial(Frozen):
    """A tool's answer to a sample question; `fault` is an error code, empty on success."""

    arguments: Mapping[str, Json]
    text: str
    fault: str


@component
class ToolSearch(Nested):
    """Add what the tenant's tools know to the evidence.

    A tool is called if the evidence is not sufficient, or if the question names something by an argument, such as an
    order number, that the evidence does not contain. A tool that fails leaves the turn degraded (`tools`).

    :param chooser: a model that chooses if no description covers enough; None for no model.
    :param adequacy_threshold: minimum adequacy of sufficient evidence.
    :param min_fit: share of the question, arguments left out, that a tool's description must cover.
    :param min_relevance: minimum relevance for a tool's answer to count as evidence.
    :param max_tools: tools called for one question, best fit first.
    :param failures: consecutive failures after which a tool is skipped.
    :param pause: seconds for which it is skipped.
    :param concurrent: calls of one tool at once.
    """

    def __init__(
        self,
        chooser: LlmToolChooser | None = None,
        adequacy_threshold: float = 0.45,
        min_fit: float = 0.5,
        min_relevance: float = 0.2,
        max_tools: int = 2,
        failures: int = 5,
        pause: float = 30,
        concurrent: int = 4,
    ) -> None:
        self.chooser = chooser
        self.adequacy_threshold = adequacy_threshold
        self.min_fit = min_fit
        self.min_relevance = min_relevance
        self.max_tools = max_tools
        self.failures = failures
        self.pause = pause
        self.concurrent = concurrent

    @component.output_types(documents=list[Document], adequacy=float)
    def run(
        self,
        question: str,
        query: str,
        documents: list[Document],
        adequacy: float,
        attempt: int = 1,
        locale: str = "ru",
    ) -> dict[str, Any]:
        """Return the evidence with the answers of matching tools before it, and its adequacy.

        :param question: the customer's words, from which arguments are taken.
        :param documents: the accepted evidence, best first.
        :param attempt: the number of the pass; a model chooses tools in the first one only.
        """
        found = documents
        try:
            for document in self._looked_up(question, query, documents, adequacy, attempt, locale):
                adequacy = max(adequacy, relevance(document))
                found = [document, *found]
        except Exception as error:
            degraded(STEP, error)
        return {"documents": found, "adequacy": adequacy}

    def may_answer(self, question: str, query: str) -> bool:
        """Return whether a tool may answer when no passage does."""
        return bool(self._matching(question, query) or (self.chooser is not None and tools.offered()))

    def _matching(self, question: str, query: str) -> Sequence[Lookup]:
        """Return the tools that match the question, best first. Reads a few records at most every other second."""
        offered = tools.offered()
        if not offered:
            return ()
        read = read_query(query)
        lookups = (lookup for tool in offered if (lookup := self._lookup(tool, question, read)))
        return sorted(lookups, key=lambda one: -one.fit)[: self.max_tools]

    def _looked_up(
        self, question: str, query: str, documents: list[Document], adequacy: float, attempt: int, locale: str
    ) -> Iterator[Document]:
        if is_degraded(STEP):
            return
        enough = adequacy >= self.adequacy_threshold
        consulted = {document.meta.get("doc_id") for document in documents}
        lookups = self._matching(question, query)
        if not lookups and not enough and attempt <= 1 and self.chooser is not None and (offered := tools.offered()):
            try:
                lookups = self.chooser.choose(question, offered, locale)
            except ModelFailed as error:
                degraded(STEP, error)
        for lookup in lookups:
            if ORIGIN + lookup.tool.name in consulted or (enough and not _names_unseen(lookup, documents)):
                continue
            try:
                document = self._document(lookup, query)
            except ModelFailed as error:
                degraded(STEP, error)
                continue
            if document is not None and relevance(document) >= self.min_relevance:
                yield document

    def _lookup(self, tool: Tool, question: str, query: Query) -> Lookup | None:
        arguments = extract_arguments(tool, clean(question))
        if arguments is None:
            return None
        argument_stems = {
            stem for name, value in arguments.items() if is_part(tool, name) for stem in stems(str(value))
        }
        topic = {stem: weight for stem, weight in query.weights.items() if stem not in argument_stems}
        fit = coverage(topic, f"{tool.title}\n{tool.description}")
        return Lookup(tool, arguments, fit) if topic and fit >= self.min_fit else None

    def _document(self, lookup: Lookup, query: str) -> Document | None:
        """Return the tool's answer; None if it has none.

        :raises ModelFailed: the tool does not work.
        """
        tool = lookup.tool
        key = "tool", get_settings().database, context.current().tenant_id, tool.name, tool.url
        shared = upstream(key, failures=self.failures, pause=self.pause, concurrent=self.concurrent)
        # In a thread that can be left behind: nothing else bounds how long the resolver takes for the tool's name.
        text = attempt_call(f"tool {tool.name}", shared, partial(_text_of, lookup), tool.timeout_seconds)
        if not text:
            return None
        document = _as_document(lookup, text)
        judged = judge(read_query(query), [to_passage(document)])[0].probability
        # An answer about the very thing that was asked answers as far as the tool fits the question.
        certain = max(judged, lookup.fit) if judged >= self.min_relevance else judged
        return with_meta(document, 1.0, relevance=certain, graded=True)


def try_tool(tool: Tool, question: str) -> Trial:
    """Ask a tool as a question of a customer would, whether or not the question fits its description."""
    arguments = extract_arguments(tool, clean(question))
    if arguments is None:
        return Trial({}, "", "tool_arguments_missing")
    try:
        text = _text_of(Lookup(tool, arguments, 1.0))
    except OporaError as error:
        return Trial(arguments, "", error.code)
    except (ValueError, RecursionError):
        return Trial(arguments, "", "tool_refused")
    return Trial(arguments, text, "" if text else "tool_silent")


def _names_unseen(lookup: Lookup, documents: Sequence[Document]) -> bool:
    """Return whether the question names something that the evidence does not mention."""
    schemas = lookup.tool.parameters.properties
    named = [str(value) for name, value in lookup.arguments.items() if schemas[name].pattern is not None]
    texts = "\n".join(document.content or "" for document in documents)
    return any(value not in texts for value in named)


def _text_of(lookup: Lookup) -> str:
    """Return the tool's answer as text; empty if it has none."""
    tool = lookup.tool
    body = json.dumps(lookup.arguments, ensure_ascii=False).encode()
    fetcher = Fetcher(permitted=is_permitted, seconds=tool.timeout_seconds, largest=_MAX_BYTES)
    answer = fetcher.post(tool.url, body, {**tool.secrets, "content-type": "application/json"})
    if answer.status in (204, 404):
        return ""
    if answer.status != 200:
        raise ValueError("the tool refused")
    text = answer.data.decode("utf-8")
    if answer.kind.endswith("json"):
        # JSON can encode half of a surrogate pair, which no answer can be sent with.
        text = _as_text(tool, json.loads(text), lookup.arguments).encode(errors="replace").decode()
    # Like a document's: no markup of it reaches a customer's page. A template may repeat a long field many times.
    return inert(clean(text[:_MAX_BYTES]).strip()[:_MAX_LENGTH])


def _as_text(tool: Tool, answer: Json, arguments: Mapping[str, Json]) -> str:
    """Return a JSON answer as text: by the tool's own template, else a line for each field."""
    if not answer:
        return ""
    fields = dict(islice(_fields(answer), _MAX_LINES))
    if not tool.answer:
        return "\n".join(f"{name}: {value}" if name else value for name, value in fields.items())
    values = {**{name: str(value) for name, value in arguments.items()}, **fields}
    # A line that lacks a field says nothing.
    lines = [line for line in tool.answer.splitlines() if set(_FIELD.findall(line)) <= values.keys()]
    return _FIELD.sub(lambda match: values[match[1]], "\n".join(lines))


def _fields(value: Json, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _fields(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value, 1):
            yield from _fields(part, f"{name}.{number}" if name else str(number))
    elif value is not None:
        yield name, " ".join(str(value).split())[:_MAX_LENGTH]


def _as_document(lookup: Lookup, text: str) -> Document:
    tool = lookup.tool
    argument_list = ", ".join(str(value) for name, value in lookup.arguments.items() if is_part(tool, name))
    spans = sentence_spans(text)
    instructing = orders(text, spans)
    chunk_id = f"{ORIGIN}{tool.name}:{sha256(text.encode()).hexdigest()[:16]}"
    meta = {
        "chunk_id": chunk_id,
        "doc_id": ORIGIN + tool.name,
        "title": tool.title,
        "heading": f"{tool.description} ({argument_list})" if argument_list else tool.description,
        "sentences": [span for place, span in enumerate(spans) if place not in instructing],
        "source": tool.name,
        "trust": "auto",
        "updated_at": datetime.now(UTC).date().isoformat(),
        "scores": {SEARCH: lookup.fit},
    }
    return Chunk(id=chunk_id, content=text, meta=meta, score=1.0)
