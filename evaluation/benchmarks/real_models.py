"""`python -m evaluation.benchmarks.real_models --url URL --set NAME`: measure whole turns with a real model.

Questions of any data set of `opora evaluate` go through the profile `openai` to a server of OpenAI's protocol; without
`--url` the simulator is asked. A queue that a person answers takes `--seconds 7000 --concurrent 40`. Every turn is a
line of `--out`, without the name of what answered, so that a reader can judge it blind: what was shown, what was
written and not shown, and each call. The report on standard error counts outcomes, hidden drafts, calls, tokens and
characters of prompts; of sets with an answer key also what is right and whether a labelled passage was in a prompt. The
exit code is 1 when something was shown that no passage supports.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import monotonic, perf_counter
from typing import Annotated, TypeAlias

import httpx
import numpy as np
import typer

from components.answer.packing import quotable
from components.language.texts import text
from components.models.calls import Call, collect_calls
from components.turn import SHOWN, Passage, Turn
from evaluation import workspace
from evaluation.asking import concurrently, conversation, recorded
from evaluation.benchmarks import results
from evaluation.benchmarks.models import Interval, critical_path
from evaluation.cases import Case, Page, QuestionSet
from evaluation.datasets import DATA_SETS
from evaluation.datasets.catalogue import READERS, chosen_sets
from evaluation.datasets.rows import DATA
from evaluation.metrics.answer_key import grade, grade_turn
from evaluation.metrics.shown import passages, unentailed
from evaluation.simulator.adapted import adapt, edited
from evaluation.simulator.running import simulator_thread
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.engine import AskEngine
from pipelines.ask.usecase import Ask, begin
from pipelines.definition import components_of_type
from settings import get_settings
from tenants.core.context import acting_as

_PROFILE = "openai"
_TIERS = ("fast", "strong")
_PATIENCE = 1_000

Sets: TypeAlias = Annotated[list[str], typer.Option("--set", help="Data set of `opora evaluate`, or a part of one.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """A finished turn.

    `right` is by the answer key, None without a key. `reached` says whether a labelled passage was in a prompt, None
    without labelled passages.
    """

    case: Case
    turn: Turn
    answer: TurnAnswer
    calls: Sequence[Call]
    seconds: float
    right: bool | None
    reached: bool | None
    unsupported: Sequence[str]

    @property
    def shown(self) -> bool:
        return self.answer.outcome in SHOWN

    @property
    def hidden(self) -> str:
        """Return the draft that the visitor does not see; empty without a draft."""
        return self.turn.draft.text if self.turn.draft and not self.shown else ""

    @property
    def in_sequence(self) -> int:
        """Return the number of calls on the critical path."""
        return len(critical_path([Interval(one.started, one.started + one.milliseconds / 1_000) for one in self.calls]))

    def line(self) -> dict[str, object]:
        """Return the turn as a line of `--out`."""
        return {
            "id": self.case.case_id,
            "question": self.case.question,
            "outcome": self.answer.outcome,
            "text": self.answer.answer.text,
            "missing": self.turn.draft.missing if self.turn.draft else (),
            "hidden": self.hidden,
            "sources": list(dict.fromkeys(one.title for one in self.answer.citations if self.shown)),
            "articles": [" › ".join(filter(None, (one.title, one.heading))) for one in self.answer.articles],
            "calls": [
                {
                    "step": one.step,
                    "outcome": one.outcome,
                    "seconds": round(one.milliseconds / 1_000, 2),
                    "prompt_characters": len(one.request),
                }
                for one in self.calls
            ],
            "calls_in_sequence": self.in_sequence,
            "prompt_characters": sum(len(one.request) for one in self.calls),
            "tokens": dict(self.answer.meta.tokens),
            "degraded": self.answer.meta.degraded,
            "seconds": round(self.seconds, 2),
        }


def main(
    sets: Sets = ["fixture"],  # noqa: B006 - Typer copies defaults
    url: Annotated[str, typer.Option(help="Of the server, without /v1; the simulator if empty.")] = "",
    limit: Annotated[int, typer.Option(help="Questions of each set, spread over all of it; 0: all.")] = 0,
    concurrent: Annotated[int, typer.Option(min=1, help="Questions at once.")] = 1,
    seconds: Annotated[float, typer.Option(help="Time limit of a turn and of each call.")] = 600.0,
    reply_tokens: Annotated[int, typer.Option(help="Longest reply of the model; 0: its own limit.")] = 0,
    data: Annotated[Path, typer.Option(help="Folder of the public data sets.")] = DATA,
    out: Annotated[Path, typer.Option(help="A line of JSON for each turn.")] = Path("/dev/stdout"),
) -> None:
    """Ask, write and count."""
    chosen = [one for name in sets for one in _chosen(name, data)]
    os.environ.setdefault("OPENAI_API_KEY", "none")  # the client demands one, local servers do not
    workspace.enter(get_settings().data_dir.resolve() / "evaluation")
    unsupported = 0
    with ExitStack() as stack:
        server = url.rstrip("/") or stack.enter_context(simulator_thread())[1]
        folder = Path(stack.enter_context(TemporaryDirectory()))
        profile = _adapted(folder, server, seconds, concurrent, reply_tokens)
        lines = stack.enter_context(out.open("w", encoding="utf-8"))
        writing = Lock()

        def write(asked: Asked) -> None:
            with writing:
                lines.write(json.dumps(asked.line(), ensure_ascii=False) + "\n")
                lines.flush()

        ask = stack.enter_context(closing(Ask(AskEngine(profile))))
        ask.warm_up()
        for one in chosen:
            cases = one.cases[:: max(1, len(one.cases) // limit) if limit else 1][: limit or None]
            asked = _ask_all(ask, QuestionSet(one.name, one.corpus, cases), concurrent, seconds, write)
            _print(one.name, asked)
            unsupported += sum(bool(turn.unsupported) for turn in asked)
    sys.exit(int(unsupported > 0))


def _chosen(name: str, data: Path) -> Iterator[QuestionSet]:
    """Return the sets of a family, or the set with that name."""
    family = next((one for one, parts in READERS.items() if name in parts), name)
    if family not in DATA_SETS:
        known = (*DATA_SETS, *(part for parts in READERS.values() for part in parts))
        raise typer.BadParameter(f"{name}: none of {', '.join(dict.fromkeys(known))}")
    for one in chosen_sets(family, data):
        if isinstance(one, QuestionSet) and name in (family, one.name):
            yield one


def _adapted(folder: Path, url: str, seconds: float, concurrent: int, reply_tokens: int) -> Path:
    """Write the profile of these models: no limits but the turn's."""
    listed = httpx.get(f"{url}/v1/models", timeout=30).raise_for_status().json()["data"]
    names = dict.fromkeys(_TIERS, str(listed[0]["id"]))
    adapt(folder, url, _PROFILE, names, timeout=seconds, concurrent=2 * concurrent, failures=_PATIENCE)
    path = folder / "ask" / "profiles" / f"{_PROFILE}.yaml"
    with edited(path) as profile:
        for generator in components_of_type(profile, "OpenAIChatGenerator") if reply_tokens else ():
            generator["init_parameters"]["generation_kwargs"] = {"max_completion_tokens": reply_tokens}
    return path


def _ask_all(
    ask: Ask, chosen: QuestionSet, concurrent: int, seconds: float, write: Callable[[Asked], None]
) -> list[Asked]:
    def work(case: Case) -> Asked:
        asked = _asked(ask, case, seconds, known)
        write(asked)
        return asked

    with acting_as(workspace.tenant_for(chosen.corpus, lambda *_: None)):
        known = passages()
        return concurrently(work, chosen.cases, concurrent)


def _asked(ask: Ask, case: Case, seconds: float, known: Mapping[str, Passage]) -> Asked:
    history = conversation(ask, case)
    with collect_calls(deadline=monotonic() + seconds):
        started = perf_counter()
        turn, steps = ask.finish(begin(AskRequest(question=case.question, locale=case.locale or None), history=history))
        spent = perf_counter() - started
    answer = answer_of(turn, latency_ms=1_000 * spent, steps=steps)
    return Asked(
        case,
        turn,
        answer,
        steps.calls,
        spent,
        right=grade_turn(recorded(case, turn), case.key).right if case.key else None,
        reached=_reached(case, turn, steps.calls),
        unsupported=unentailed(case.question, answer, known),
    )


def _reached(case: Case, turn: Turn, calls: Iterable[Call]) -> bool | None:
    """Whether a labelled passage was in the prompt that asks for an answer."""
    if case.key is None or not any(passage.grade for passage in case.key.passages):
        return None
    prompts = "\n".join(call.request for call in calls if call.step == "answer")
    gap = text("outcomes.passage.gap", turn.locale)
    shown = (one for one in turn.evidence.passages if quotable(one, gap) in prompts)
    return any(grade(Page(one.doc_id, one.title, one.heading, one.text), case.key) for one in shown)


def _print(name: str, turns: Sequence[Asked]) -> None:
    calls = [call for turn in turns for call in turn.calls]
    tokens = sum(call.prompt_tokens + call.completion_tokens for call in calls)
    characters = sum(len(call.request) for call in calls)
    n = max(1, len(turns))
    figures: dict[str, results.Value] = {
        "outcomes": _counted(turn.answer.outcome for turn in turns),
        "hidden drafts": sum(bool(turn.hidden) for turn in turns),
        "degraded": _counted(step for turn in turns for step in turn.answer.meta.degraded),
        "calls a question": len(calls) / n,
        "calls in sequence": _counted(str(turn.in_sequence) for turn in turns),
        "tokens a question": tokens / n,
        "prompt characters a question": characters / n,
        "seconds (median)": float(np.median([turn.seconds for turn in turns])),
        "unsupported": sum(bool(turn.unsupported) for turn in turns),
        **_by_key([turn for turn in turns if turn.right is not None]),
    }
    results.print_table(f"{name}: {len(turns)} questions", ("figure", "value"), figures.items())
    _print_calls(calls)
    results.print_faults([f"{turn.case.case_id}: {fault}" for turn in turns for fault in turn.unsupported], limit=100)


def _by_key(turns: Sequence[Asked]) -> dict[str, str]:
    """Return the figures of turns whose question has an answer key."""
    if not turns:
        return {}
    claims = [bool(turn.right) for turn in turns if turn.shown]
    reached = [turn.reached for turn in turns if turn.reached is not None and turn.case.answerable]
    unanswerable = [turn.shown for turn in turns if turn.case.answerable is False]
    return {
        "right, of answers shown": _of(claims),
        "shown, of questions without an answer": _of(unanswerable),
        "labelled passage in the prompt": _of(reached),
    }


def _print_calls(calls: Sequence[Call]) -> None:
    rows = []
    for step in dict.fromkeys(call.step for call in calls):
        of_step = [call for call in calls if call.step == step]
        failed = _counted(call.outcome for call in of_step if call.outcome != "ok")
        characters = float(np.mean([len(call.request) for call in of_step]))
        seconds = float(np.median([call.milliseconds for call in of_step])) / 1_000
        rows.append((step, len(of_step), failed, characters, seconds))
    columns = ("step", "calls", "failed", "prompt characters", "seconds (median)")
    results.print_table("Calls", columns, rows)


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common())


def _of(flags: Sequence[bool]) -> str:
    return f"{sum(flags)} of {len(flags)}"


if __name__ == "__main__":
    typer.run(main)
