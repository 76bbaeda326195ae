"""Case files: the JSON Lines format for questions about one's own knowledge base."""

from pathlib import Path

from pydantic import Field, ValidationError

from components.turn import Intent, Outcome, Reason
from evaluation.cases import Case
from tenants.core.errors import Invalid
from tenants.core.validation import FrozenModel

LONGEST_QUESTION = 2_000


class CaseRow(FrozenModel):
    """A line of a case file. `docs/develop/evaluation.md` shows the same table; a test keeps the two equal."""

    id: str = Field(min_length=1, max_length=200, description="Unique in the file; identifies the case across runs.")
    question: str = Field(min_length=1, max_length=LONGEST_QUESTION, description="The customer's question.")
    locale: str = Field("", pattern="^(ru|en)?$", description="Language of the reply; the tenant's if left out.")
    history: tuple[str, ...] = Field((), description="The customer's earlier questions in the same conversation.")
    expected_outcome: Outcome | None = Field(
        None, description="The outcome that the turn must have, such as `answered`."
    )
    expected_reason: Reason | None = Field(None, description="The `refusal_reason` that a refusal must give.")
    answerable: bool | None = Field(
        None, description="Whether the knowledge base contains the answer. If left out, `expected_outcome` decides."
    )
    expected_intents: tuple[Intent, ...] = Field((), description="Intents, one of which must be recognised.")
    gold_doc_ids: tuple[str, ...] = Field((), description="All documents that answer the question.")
    gold_spans: tuple[str, ...] = Field((), description="Equally good wordings of the answer; one must be shown.")
    gold_answer: str = Field("", description="A complete right answer, for readers of the report and for evaluators.")
    must_contain: tuple[str, ...] = Field((), description="Wordings that must all appear in the shown text.")
    must_not_contain: tuple[str, ...] = Field((), description="Wordings that must not appear in the shown text.")
    category: str = Field("", description="Groups the cases of a report.")
    tags: tuple[str, ...] = Field((), description="Free labels; `--tag` selects by them.")
    vertical: str = Field("", description="The line of business, such as `retail`.")
    sealed: bool = Field(False, description="Held out: measured with `--sealed` only, never used for tuning.")

    def to_case(self) -> Case:
        own_names = {"id", "gold_doc_ids", "expected_outcome", "expected_reason", "expected_intents", "answerable"}
        return Case(
            case_id=self.id,
            answerable=self._answerable(),
            gold_docs=self.gold_doc_ids,
            outcome=self.expected_outcome or "",
            reason=self.expected_reason or "",
            intents=self.expected_intents,
            **self.model_dump(exclude=own_names),
        )

    def _answerable(self) -> bool | None:
        if self.answerable is not None:
            return self.answerable
        if self.expected_outcome in ("answered", "partially_answered"):
            return True
        return False if self.expected_reason == "no_relevant_context" else None


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read the cases of a file.

    :raises Invalid: `cases_unreadable` with the line and the field, `cases_empty`, `case_repeated`.
    """
    cases: dict[str, Case] = {}
    with Invalid("cases_unreadable", path=str(path), line=1, field="UTF-8").instead_of(UnicodeDecodeError):
        lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = CaseRow.model_validate_json(line).to_case()
        except ValidationError as unfit:
            field = ".".join(map(str, unfit.errors()[0]["loc"])) or "JSON"
            raise Invalid("cases_unreadable", path=str(path), line=number, field=field) from unfit
        if case.case_id in cases:
            raise Invalid("case_repeated", path=str(path), line=number, case=case.case_id)
        cases[case.case_id] = case
    if not cases:
        raise Invalid("cases_empty", path=str(path))
    return tuple(cases.values())
