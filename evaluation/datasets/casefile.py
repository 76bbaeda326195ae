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

    id: str = Field(min_length=1, max_length=200, description="Unique in the file; pairs the case with earlier runs.")
    question: str = Field(min_length=1, max_length=LONGEST_QUESTION, description="What the visitor asks.")
    locale: str = Field("", pattern="^(ru|en)?$", description="Language of the reply; the tenant's own when empty.")
    history: tuple[str, ...] = Field((), description="What the visitor asked before in the same conversation.")
    expected_outcome: Outcome | None = Field(None, description="How the turn has to end, such as `answered`.")
    expected_reason: Reason | None = Field(None, description="The `refusal_reason` that a refusal has to give.")
    answerable: bool | None = Field(
        None, description="Whether the knowledge base holds the answer. Without it, `expected_outcome` decides."
    )
    expected_intents: tuple[Intent, ...] = Field((), description="Intents, one of which has to be recognised.")
    gold_doc_ids: tuple[str, ...] = Field((), description="The documents that answer it, all of them.")
    gold_spans: tuple[str, ...] = Field((), description="Equally good wordings of the answer; one has to be shown.")
    gold_answer: str = Field("", description="A whole right answer, for readers of the report and for evaluators.")
    must_contain: tuple[str, ...] = Field((), description="Wordings that must all appear in the shown text.")
    must_not_contain: tuple[str, ...] = Field((), description="Wordings that must not appear in the shown text.")
    category: str = Field("", description="Groups the cases of a report.")
    tags: tuple[str, ...] = Field((), description="Free labels; `--tag` picks by them.")
    vertical: str = Field("", description="The line of business, such as `retail`.")
    sealed: bool = Field(False, description="Kept apart: measured with `--sealed` only, never tuned to.")

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
