"""Filling a JSON schema: what each property is, its name says; what no name tells gets the least that is allowed."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from evaluation.simulator import thinking
from evaluation.simulator.reading import Claim, Passage, Prompt

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = Mapping[str, object]
Item: TypeAlias = "Passage | Claim | None"

_NUMBERS = frozenset({"passage", "index", "n", "number", "id", "chunk", "claim_index", "claim_number"})
_YES = frozenset({"relevant", "answers", "yes", "grade", "helps", "verdict", "relevance", "score", "probability"})


def fill(schema: Schema, prompt: Prompt, *, agree: bool = False) -> Json:
    """An instance of the schema that says what the rules found in the prompt.

    :param agree: say yes to everything, as a judge does that obeys what it judges.
    """
    return _Filler(prompt, schema, agree).value("", schema, None)


class _Filler:
    def __init__(self, prompt: Prompt, root: Schema, agree: bool) -> None:
        self.prompt = prompt
        self.agree = agree
        definitions = root.get("$defs")
        self.definitions: Schema = definitions if isinstance(definitions, Mapping) else {}

    def value(self, name: str, schema: Schema, item: Item) -> Json:
        schema = self._resolved(schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        choices = schema.get("enum")
        if isinstance(choices, list):
            return self._choice(choices, item)
        if kind == "object":
            properties = schema.get("properties")
            inner = properties if isinstance(properties, Mapping) else {}
            return {key: self.value(key, _schema(each), item) for key, each in inner.items()}
        if kind == "array":
            return self._array(name, _schema(schema.get("items")), item)
        if kind == "boolean":
            return self._share(item) >= 0.5
        if kind in ("integer", "number"):
            return self._number(name, schema, item)
        return self._text(name, item) if kind == "string" else None

    def _resolved(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._resolved(_schema(self.definitions.get(reference.rpartition("/")[2])))
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key)
            if isinstance(branches, list):
                real = [branch for one in branches if (branch := _schema(one)).get("type") != "null"]
                return self._resolved(real[0]) if real else {}
        return schema

    def _array(self, name: str, items: Schema, item: Item) -> Json:
        items = self._resolved(items)
        if items.get("type") == "object":
            properties = items.get("properties")
            keys = set(properties) if isinstance(properties, Mapping) else set()
            among: Sequence[Item] = self.prompt.claims if _of_claims(name, keys) else self.prompt.passages
            return [self.value(name, items, one) for one in among]
        if items.get("type") == "integer":
            if isinstance(item, Claim):
                return list(item.citations)
            return [one.number for one in self.prompt.passages if self._share(one) >= 0.5]
        if items.get("type") in ("boolean", "number") or "enum" in items:
            among = self.prompt.claims if name in ("claims", "verdicts") else self.prompt.passages
            return [self.value(name, items, one) for one in among]
        if name in ("queries", "variants"):
            return [self.prompt.question]
        return [] if self.agree else list[Json](thinking.missing(self.prompt)[:5])

    def _share(self, item: Item) -> float:
        """How true what is asked about the item is; about none, how well the passages answer."""
        if self.agree:
            return 1.0
        if isinstance(item, Claim):
            return thinking.supported(item, self.prompt.passages)[0]
        if isinstance(item, Passage):
            return thinking.relevance(self.prompt, item)
        return max((thinking.relevance(self.prompt, one) for one in self.prompt.passages), default=0.0)

    def _choice(self, choices: Sequence[object], item: Item) -> Json:
        names = [str(choice) for choice in choices]
        share = self._share(item)
        wanted: tuple[str, ...]
        if isinstance(item, Claim):
            wanted = (thinking.status(share), thinking.status(share).split("_", maxsplit=1)[0])
        elif share >= 0.5:
            wanted = ("yes", "fully", "relevant", "auto", "true")
        else:
            wanted = ("no", "partially" if share >= 0.25 else "cannot", "cannot", "irrelevant", "false")
        lowered = {name.lower(): name for name in names}
        return next((lowered[one] for one in wanted if one in lowered), names[0])

    def _number(self, name: str, schema: Schema, item: Item) -> Json:
        whole = schema.get("type") == "integer" or schema.get("type") == ["integer", "null"]
        if item is not None and name in _NUMBERS:
            return item.number
        highest = schema.get("maximum")
        lowest = schema.get("minimum")
        most = float(highest) if isinstance(highest, (int, float)) else (100.0 if name == "quality" else 1.0)
        least = float(lowest) if isinstance(lowest, (int, float)) else 0.0
        found = max(least, round(most * self._share(item), 3))
        return round(found) if whole else found

    def _text(self, name: str, item: Item) -> str:
        if isinstance(item, Claim):
            return item.text if name in ("claim", "text") else thinking.supported(item, self.prompt.passages)[1]
        if name in ("query", "question", "rewritten", "standalone"):
            return self.prompt.question
        return ""


def _of_claims(name: str, keys: set[str]) -> bool:
    return "claim" in name or bool(keys & {"claim", "quote", "citations", "claim_index"}) or name == "verdicts"


def _schema(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}
