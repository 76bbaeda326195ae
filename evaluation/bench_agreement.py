"""`python -m evaluation.bench_agreement`: do answers written and judged by models end as the embedded engine judges?

The twelve fixture cases and 150 questions of the vkcloud set, whole turns over HTTP, once with the embedded profile and
once with a simulator behind the profile `ollama`. Where the two end differently, the turns say why: which judge stood
in the way, with which score. Every [N] of every answer shown is held against its passage by the local claim check. A
table goes to standard error, the same as JSON to standard output; the exit code is 1 when a difference has no
explanation or a citation no support.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from evaluation import workspace
from evaluation.cases import QuestionSet
from evaluation.datasets import vkcloud
from evaluation.fixture import fixture
from evaluation.rows import DATA, Absent
from evaluation.server import Served, serving
from evaluation.shown import passages, unentailed
from evaluation.simulator.adapted import adapt
from evaluation.simulator.running import simulating
from pipelines.ask.contract import SHOWN, TurnAnswer
from settings import get_settings
from tenants import database, index
from tenants.context import Tenant, acting_as
from tenants.tokens import issue

SCHEMA = "agreement.v1"
QUESTIONS = 150
_TOKEN_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Pair:
    """One question as both profiles answered it."""

    question: str
    embedded: TurnAnswer
    models: TurnAnswer

    @property
    def agree(self) -> bool:
        """Whether both show an answer, or neither does and both give the same reason to the visitor."""
        one, two = self.embedded.outcome in SHOWN, self.models.outcome in SHOWN
        return one == two and (one or self.embedded.outcome == self.models.outcome)

    @property
    def explanation(self) -> str:
        """Which judge made the difference, and by which gate; empty when none did."""
        if self.models.meta.degraded:
            return ""
        if self.models.refusal_reason == "llm_self_refusal":
            return "the writer found no answer in the passages"
        withheld = [one for one in (self.embedded, self.models) if one.outcome not in SHOWN]
        stood = [
            f"{'local judge' if one is self.embedded else 'model'}: {gate.name} {gate.score:.3g} < {gate.threshold:g}"
            for one in withheld
            for gate in one.verdict.gates
            if not gate.passed
        ]
        return "; ".join(stood)


@dataclass(slots=True)
class Agreement:
    """What was found, over all sets."""

    pairs: list[Pair] = field(default_factory=list)
    citations: int = 0
    unsupported: list[str] = field(default_factory=list)

    @property
    def unexplained(self) -> list[Pair]:
        """Differences without a reason."""
        return [pair for pair in self.pairs if not pair.agree and not pair.explanation]


def main() -> int:
    """Measure and print."""
    console = Console(stderr=True)
    sets = _sets(console)
    folder = workspace.enter(get_settings().data_dir.resolve() / "bench")
    tenants = [workspace.tenant_for(one.corpus, lambda *_: None) for one in sets]
    _let_go()
    asked = list(zip(sets, tenants, strict=True))
    with serving(folder) as served:
        embedded = [_answers(served, tenant, one) for one, tenant in asked]
    with TemporaryDirectory() as temporary, simulating() as simulator:
        pipelines = adapt(Path(temporary), simulator.url)
        with serving(folder, OPORA_PROFILE="ollama", OPORA_PIPELINES_DIR=str(pipelines)) as served:
            models = [_answers(served, tenant, one) for one, tenant in asked]
    found = Agreement()
    for (one, tenant), ours, theirs in zip(asked, embedded, models, strict=True):
        questions = [case.question for case in one.cases]
        found.pairs += [Pair(*pair) for pair in zip(questions, ours, theirs, strict=True)]
        with acting_as(tenant):
            known = passages()
        for answer in theirs:
            found.citations += sum(len(claim.citations) for claim in answer.claims) if answer.outcome in SHOWN else 0
            found.unsupported += unentailed(answer, known)
    _print(console, found)
    return 1 if found.unexplained or found.unsupported else 0


def _sets(console: Console) -> list[QuestionSet]:
    sets = [fixture()]
    try:
        chosen = vkcloud(DATA, "ru")[0]
    except Absent as absent:
        console.print(f"{absent.path} is absent: the fixture alone")
    else:
        sets.append(QuestionSet(chosen.name, chosen.corpus, chosen.cases[:QUESTIONS]))
    return sets


def _answers(served: Served, tenant: Tenant, asked: QuestionSet) -> list[TurnAnswer]:
    """One whole turn for each question, one after another."""
    token = issue(
        get_settings(), tenant.tenant_id, scopes=frozenset({"ask"}), subject="bench", ttl_seconds=_TOKEN_SECONDS
    )
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = HTTPConnection("127.0.0.1", served.port, timeout=60)
    answers = []
    for case in asked.cases:
        connection.request("POST", "/ask/run", json.dumps({"question": case.question}), headers)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {case.question}")
        answers.append(TurnAnswer.model_validate_json(body))
    connection.close()
    return answers


def _let_go() -> None:
    index.close_all()
    database.close_all()


def _print(console: Console, found: Agreement) -> None:
    table = Table("embedded", "with models", "turns", title=f"{len(found.pairs)} turns", title_justify="left")
    counted = Counter((pair.embedded.outcome, pair.models.outcome) for pair in found.pairs)
    for (ours, theirs), count in counted.most_common():
        table.add_row(ours, theirs, str(count))
    console.print(table)
    differing = [pair for pair in found.pairs if not pair.agree]
    for pair in differing:
        console.print(f"{pair.question[:80]}: {_ends(pair)}: {pair.explanation or 'NOT EXPLAINED'}", highlight=False)
    for line in found.unsupported:
        console.print(line, style="red", highlight=False)
    result = {
        "schema": SCHEMA,
        "turns": len(found.pairs),
        "agree": sum(pair.agree for pair in found.pairs),
        "same_outcome": sum(pair.embedded.outcome == pair.models.outcome for pair in found.pairs),
        "explained": len(differing) - len(found.unexplained),
        "unexplained": len(found.unexplained),
        "citations": found.citations,
        "unsupported": found.unsupported,
        "differences": [_difference(pair) for pair in differing],
    }
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def _ends(pair: Pair) -> str:
    return f"{pair.embedded.outcome} → {pair.models.outcome}"


def _difference(pair: Pair) -> Mapping[str, str | Sequence[str]]:
    return {"question": pair.question, "ends": _ends(pair), "explanation": pair.explanation}


if __name__ == "__main__":
    sys.exit(main())
