"""Orders to an assistant that customers and authors of articles give it, translated from published collections."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from components.ingest.document import SourceDocument
from evaluation.datasets.fixture import demo_corpus

Place = Literal["text", "title", "name"]
_FILE = Path(__file__).with_name("injections_ru.jsonl")


def orders() -> list[str]:
    """Return all orders."""
    return [json.loads(line)["attack"] for line in _FILE.read_text(encoding="utf-8").splitlines()]


def articles(given: Sequence[str], place: Place) -> list[tuple[str, SourceDocument]]:
    """Hide each order in an article of the demo shop; return the articles with a question about each."""
    shop = zip(given, demo_corpus("ru").documents(), strict=False)
    return [(_heading(article), _infected(article, order, place)) for order, article in shop]


def _heading(article: SourceDocument) -> str:
    return article.title or article.text.lstrip().partition("\n")[0].lstrip("# ")


def _infected(article: SourceDocument, order: str, place: Place) -> SourceDocument:
    on_one_line = " ".join(order.split())
    if place == "title":
        return replace(article, title=on_one_line[:300])
    if place == "name":
        name = f"{on_one_line[:120]}.md"
        return replace(article, doc_id=name, source=name, title="")
    middle = article.text.find(" ", len(article.text) // 2)
    return replace(article, text=f"{article.text[:middle]}\n\n{order}\n\n{article.text[middle:].strip()}")
