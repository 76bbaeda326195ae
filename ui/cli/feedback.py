"""`opora feedback`: people's verdicts on answers, and evaluation cases built from them.

Cases have the form that `docs/develop/evaluation.md` documents. A case for a thumb down has a question and no
expectation: a person has to fill in the right answer. A case whose thumbs are all up expects the same outcome on the
same documents.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from components.language.texts import LOCALES
from tenants.audit import search
from tenants.core.errors import Invalid, NotFound
from tenants.desk import feedback
from tenants.desk.feedback import THUMBS, Feedback, Thumb
from ui.cli.records import Last
from ui.cli.terminal import CommandGroup

group = CommandGroup("records", prefix="feedback_")
message = group.message

ThumbOption = Annotated[str | None, typer.Option("--thumb", help=message("help.thumb"))]

_SHOWN = 50


def _print_judged(judged: list[dict[str, Any]]) -> None:
    rows = (
        (
            f"{verdict['at']:%F %T}",
            message(f"thumb.{verdict['thumb']}"),
            message(f"thumb.{verdict['reason']}") if verdict["reason"] else "",
            verdict["question"],
            verdict["comment"],
            verdict["turn_id"],
        )
        for verdict in judged
    )
    group.print_columns(("at", "thumb", "reason", "question", "comment", "turn_id"), rows)


@group.tenant_command("list", show=_print_judged)
def feedback_list(thumb: ThumbOption = None, last: Last = _SHOWN) -> list[dict[str, Any]]:
    verdicts = feedback.latest(_thumb(thumb), limit=last)
    return [asdict(one) | {"question": search.get(one.turn_id).question or message("erased")} for one in verdicts]


@group.tenant_command("cases")
def feedback_cases(thumb: ThumbOption = None) -> None:
    for case in _cases(feedback.latest(_thumb(thumb))):
        typer.echo(json.dumps(case, ensure_ascii=False))


def _thumb(name: str | None) -> Thumb | None:
    if name is not None and name not in THUMBS:
        raise Invalid("thumb_unknown", thumb=name)
    return THUMBS[name] if name else None


def _cases(judged: Iterable[Feedback]) -> Iterator[dict[str, object]]:
    by_turn: dict[str, list[Feedback]] = {}
    for verdict in judged:
        by_turn.setdefault(verdict.turn_id, []).append(verdict)
    for turn_id, verdicts in by_turn.items():
        try:
            content = search.get(turn_id).content
        except NotFound:
            continue
        # A turn and its verdicts can be pruned or erased between the two reads.
        if content is not None:
            yield _case(turn_id, verdicts, content)


def _case(turn_id: str, verdicts: Iterable[Feedback], content: Mapping[str, object]) -> dict[str, object]:
    request, answer, history = _object(content["request"]), _object(content["answer"]), content["history"]
    thumbs = sorted({verdict.thumb for verdict in verdicts})
    reasons = sorted({verdict.reason for verdict in verdicts if verdict.reason})
    case: dict[str, object] = {"id": turn_id, "question": request["question"]}
    if answer.get("locale") in LOCALES:
        case["locale"] = answer["locale"]
    if isinstance(history, list) and history:
        case["history"] = [exchange[0] for exchange in history]
    if thumbs == ["up"]:
        case["expected_outcome"] = answer["outcome"]
        if cited := _cited(answer["citations"]):
            case["gold_doc_ids"] = cited
    return case | {"tags": ["feedback", *thumbs, *reasons]}


def _cited(citations: object) -> list[str]:
    listed = map(_object, citations) if isinstance(citations, list) else ()
    return list(dict.fromkeys(str(citation["doc_id"]) for citation in listed if citation["cited"]))


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
