"""Relations that a document declares: edges to other documents and rejected approaches.

In front matter or as keys of a JSON Lines article:

    supersedes: returns-2023.md
    depends_on: [warranty.md, {doc_id: delivery.md, weight: 0.5}]
    rejected:
      - Refund in cash
      - {text: Refund to another card, reason: The bank forbids it, date: 2024-03-01}
"""

from collections.abc import Mapping, Sequence
from typing import get_args

from components.ingest.document import SourceDocument
from components.ingest.metadata import MAX_ID_LENGTH, day
from components.turn import EdgeKind
from tenants.core.errors import Invalid
from tenants.core.json import Json
from tenants.knowledge.edges import Edge
from tenants.knowledge.rejected import MAX_REASON_LENGTH, MAX_TEXT_LENGTH, Rejected

REJECTED = "rejected"
_KINDS = get_args(EdgeKind)
_MAX_DECLARED = 100


def checked_relations(doc_id: str, meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return `meta` with its declarations in canonical form: lists of `{doc_id, weight}` and of `{text, reason, date}`.

    Raises `Invalid` with the code `metadata_invalid` and the field; a document cannot be tied to itself.
    """
    checked = dict(meta)
    for kind in _KINDS:
        if kind in checked:
            checked[kind] = [_edge(kind, item, doc_id) for item in _listed(kind, checked[kind])]
    if REJECTED in checked:
        checked[REJECTED] = [_approach(item) for item in _listed(REJECTED, checked[REJECTED])]
    return checked


def declared_edges(document: SourceDocument) -> list[Edge]:
    """Return the edges that a checked document declares."""
    return [
        Edge(document.doc_id, kind, str(mapping["doc_id"]), float(str(mapping["weight"])), declared=True)
        for kind in _KINDS
        for mapping in _mappings(document.meta.get(kind))
    ]


def declared_rejected(document: SourceDocument) -> list[Rejected]:
    """Return the rejected approaches that a checked document declares. Without its own day, an approach has that of its
    document.
    """
    since = str(document.meta.get("updated_at") or "")
    return [
        Rejected(
            str(mapping["text"]), str(mapping["reason"]), str(mapping["date"] or since), document.doc_id, declared=True
        )
        for mapping in _mappings(document.meta.get(REJECTED))
    ]


def _listed(name: str, value: Json) -> Sequence[Json]:
    items = value if isinstance(value, list | tuple) else [value]
    if len(items) > _MAX_DECLARED:
        raise Invalid("metadata_invalid", field=name)
    return items


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def _edge(kind: str, item: Json, doc_id: str) -> dict[str, Json]:
    edge = item if isinstance(item, Mapping) else {"doc_id": item}
    other, weight = edge.get("doc_id"), edge.get("weight", 1.0)
    is_valid_id = isinstance(other, str) and 0 < len(other) <= MAX_ID_LENGTH and other.isprintable() and other != doc_id
    if not is_valid_id or edge.keys() - {"doc_id", "weight"}:
        raise Invalid("metadata_invalid", field=kind)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise Invalid("metadata_invalid", field=kind)
    return {"doc_id": other, "weight": float(weight)}


def _approach(item: Json) -> dict[str, Json]:
    approach = item if isinstance(item, Mapping) else {"text": item}
    text, reason, since = approach.get("text"), approach.get("reason") or "", approach.get("date")
    if approach.keys() - {"text", "reason", "date"} or not isinstance(text, str) or not isinstance(reason, str):
        raise Invalid("metadata_invalid", field=REJECTED)
    if not 0 < len(text.strip()) <= MAX_TEXT_LENGTH or len(reason) > MAX_REASON_LENGTH:
        raise Invalid("metadata_invalid", field=REJECTED)
    return {"text": text.strip(), "reason": reason.strip(), "date": day(REJECTED, since) if since else ""}
