"""Filling of a JSON schema by property names; a property with an unknown name gets the smallest allowed value."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from evaluation.simulator import thinking
from evaluation.simulator.reading import Claim, Passage, Prompt

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = Mapping[str, object]
Item: TypeAlias = "Passage | Claim | None"

Mood: TypeAlias = Literal["honest", "agreeing", "doubtful"]

_YES = 0.55


def fill(schema: Schema, prompt: Prompt, mood: Mood = "honest") -> Json:
    """Return an instance of the schema with the rules' findings in the prompt.

    :param mood: `agreeing` says yes to everything, `doubtful` finds half of the requested items.
    """
    filler = _Filler(prompt, schema, mood)
    # Haystack's evaluators name their keys in the prompt, not in a schema.
    if prompt.task == "faithfulness":
        return {"statements": [claim.text for claim in prompt.claims], "statement_scores": filler.statement_scores()}
    if prompt.task == "relevance":
        return {"relevant_statements": filler.relevant()}
    if prompt.task == "answer":
        return filler.answer()
    return filler.value("", schema, None)


class _Filler:
    def __init__(self, prompt: Prompt, root: Schema, mood: Mood) -> None:
        self.prompt = prompt
        self.mood = mood
        definitions = root.get("$defs")
        self.definitions: Schema = definitions if isinstance(definitions, Mapping) else {}

    def value(self, name: str, schema: Schema, item: Item) -> Json:
        schema = self._resolved(schema)
        kind = schema.get("type")
        choices = schema.get("enum")
        if isinstance(choices, list):
            return self._choice(choices, item)
        if kind == "object":
            properties = schema.get("properties")
            inner = properties if isinstance(properties, Mapping) else {}
            return {key: self.value(key, _schema(part), item) for key, part in inner.items()}
        if kind == "array":
            return self._array(name, _schema(schema.get("items")))
        if kind == "boolean":
            return self._share(item) >= _YES
        if kind in ("integer", "number"):
            return self._number(schema, item)
        return self._text(name, item) if kind == "string" else None

    def answer(self) -> Json:
        """Return an answer form: cited sentences, or the statement that none was found."""
        found = thinking.sentences(self.prompt)
        missing = self._missing() if self._share(None) < _YES else []
        covers = "none" if not found else "partially" if missing else "fully"
        return {
            "covers": covers,
            "sentences": [{"text": text, "cites": [number]} for text, number in thinking.in_other_words(found)],
            "missing": list[Json](missing),
            "options": [],
            "see": [] if found else list[Json](passage.number for passage in self.prompt.passages[:3]),
        }

    def statement_scores(self) -> list[Json]:
        return [int(thinking.status(self._share(claim)) == "supported") for claim in self.prompt.claims]

    def relevant(self) -> list[Json]:
        agreeing = self.mood == "agreeing"
        sentences = (sentence.text for passage in self.prompt.passages for sentence in passage.sentences)
        return list(sentences if agreeing else thinking.relevant(self.prompt))

    def _resolved(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._resolved(_schema(self.definitions.get(reference.rpartition("/")[2])))
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key)
            if isinstance(branches, list):
                real = [schema for branch in branches if (schema := _schema(branch)).get("type") != "null"]
                return self._resolved(real[0]) if real else {}
        return schema

    def _array(self, name: str, items: Schema) -> Json:
        items = self._resolved(items)
        if name == "arguments":
            tool = thinking.tool(self.prompt)
            value = thinking.argument(self.prompt)
            return [{"name": argument, "value": value} for argument in (tool.arguments if tool else ())]
        if name == "proposals":
            return [{"number": one, "approach": other} for one, other in thinking.proposals(self.prompt)]
        if items.get("type") == "object":
            among: Sequence[Item] = self.prompt.claims if name == "claims" else self.prompt.passages
            if name == "documents" and self.mood == "agreeing":
                among = among[::-1]  # an obedient model puts the worst first
            return [self.value(name, items, item) for item in among]
        if items.get("type") == "string":
            return list[Json](self.prompt.missing if name == "queries" else self._missing())
        return []

    def _missing(self) -> list[str]:
        if self.mood == "doubtful":
            return [thinking.key_terms(self.prompt)]
        return [] if self.mood == "agreeing" else thinking.missing(self.prompt)

    def _share(self, item: Item) -> float:
        """Return the degree of truth of the item; without one, how well the answer or passages settle the question."""
        if self.mood == "agreeing":
            return 1.0
        if isinstance(item, Claim):
            return thinking.support(item, self.prompt.passages).score
        if isinstance(item, Passage):
            return thinking.relevance(self.prompt, item)
        if self.mood == "doubtful":
            return 0.5
        if self.prompt.answer:
            return thinking.settled(self.prompt)
        return max((thinking.relevance(self.prompt, passage) for passage in self.prompt.passages), default=0.0)

    def _choice(self, choices: Sequence[object], item: Item) -> Json:
        share = self._share(item)
        if isinstance(item, Claim):
            status = thinking.status(share)
        else:
            status = "fully" if share >= _YES else "partially" if share >= _YES / 2 else "cannot"
        return status if status in choices else str(choices[0])

    def _number(self, schema: Schema, item: Item) -> Json:
        if item is not None:
            return item.number
        minimum, maximum = (schema.get(bound) for bound in ("minimum", "maximum"))
        lowest = float(minimum) if isinstance(minimum, int | float) else 0.0
        highest = float(maximum) if isinstance(maximum, int | float) else 1.0
        value = max(lowest, highest * self._share(item))
        return round(value) if schema.get("type") == "integer" else round(value, 3)

    def _text(self, name: str, item: Item) -> str:
        if isinstance(item, Claim):
            return item.text if name == "claim" else thinking.support(item, self.prompt.passages).quote
        if name == "tool" and (tool := thinking.tool(self.prompt)):
            return tool.name
        if name == "question":
            return thinking.standalone(self.prompt)
        return self.prompt.question if name == "query" else ""


def _schema(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}
