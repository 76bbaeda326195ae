"""What a person can set on the simulator: how fast it is, and how it fails."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Task = Literal[
    "answer",
    "grade",
    "review",
    "evaluate",
    "rewrite",
    "condense",
    "choose",
    "rank",
    "faithfulness",
    "relevance",
    "tool",
    "embed",
    "other",
]
"""What a call is for, as its prompt and its schema show it: `choose` is choosing a tool, `tool` the tool itself,
`faithfulness` and `relevance` what Haystack's evaluators ask."""

FaultKind = Literal[
    "refused",
    "hang",
    "slow",
    "500",
    "429",
    "truncated",
    "cut_off",
    "garbage",
    "noise",
    "empty",
    "refusal",
    "wrong_schema",
    "injected",
    "invented",
    "doubtful",
    "looping",
    "sloppy",
    "copied",
]
"""How a call fails.

`refused`: the connection is reset before a word. `hang`: nothing ever comes. `slow`: a token a second. `500`, `429`:
the status. `truncated`: the text ends in its middle and the protocol says that it was too long. `cut_off`: the
connection ends in the middle. `garbage`: a text of no meaning. `noise`: bytes that are not the protocol. `empty`: no
text. `refusal`: the model excuses itself. `wrong_schema`: JSON of another schema. `injected`: the model does what it
reads in passages, question or claims: repeats it, names a foreign link, tells its prompt; as a judge it agrees to
everything. `invented`: sentences with numbers that no passage holds, among true ones. `doubtful`: a judge that misses
half of what was asked for, so that the pipeline looks again.

What real models of a few billion parameters do: `looping` says its last line, or the last part of its form, again until
it is cut. `sloppy` says the right thing the wrong way: without marks, twice, under headings, a line in Chinese; a form
in a code fence with words around it, percent signs, null, capitals and a field of its own. `copied` repeats the reply
of the prompt's example turn in place of one of its own.
"""


class Fault(BaseModel):
    """One way of failing, and the calls that fail so.

    :param task: the calls it is about; all when None.
    :param model: name of the model it is about; any when empty.
    :param after: calls of that kind that go well first.
    :param times: calls that fail then; 0: all of them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    task: Task | None = None
    model: str = ""
    after: int = Field(default=0, ge=0)
    times: int = Field(default=0, ge=0)


class Knobs(BaseModel):
    """How the simulator behaves. Times are milliseconds.

    :param first_token_ms: until the first token is there.
    :param tokens_per_second: after that; 0: all at once.
    :param call_ms: length of a whole call, over which its tokens are spread evenly; 0: as the rate has it.
    :param embed_ms: length of an embedding call.
    :param models: names that it answers to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    first_token_ms: float = Field(default=0.0, ge=0, le=600_000)
    tokens_per_second: float = Field(default=0.0, ge=0)
    call_ms: float = Field(default=0.0, ge=0, le=600_000)
    embed_ms: float = Field(default=0.0, ge=0, le=600_000)
    faults: tuple[Fault, ...] = ()
    models: tuple[str, ...] = ("simulated", "simulated-strong", "simulated-fallback", "simulated-embed")
