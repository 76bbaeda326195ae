"""Settings of the simulator: speed and failures."""

from typing import Literal

from pydantic import Field, field_validator

from components.embed.protocol import known_dimensions
from tenants.core.validation import FrozenModel

DIMENSIONS = 384
"""Length of the vectors, unless a knob or the model's name says otherwise."""

Task = Literal[
    "answer",
    "grade",
    "review",
    "evaluate",
    "proposals",
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
"""Purpose of a call, recognised by its prompt and its schema: `choose` is the choice of a tool, `tool` the tool itself,
`faithfulness` and `relevance` are calls of Haystack's evaluators."""

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
"""Ways in which a call fails.

`refused`: the connection is reset before any data. `hang`: no data ever comes. `slow`: a token a second. `500`, `429`:
the status. `truncated`: the text ends in the middle and the protocol says that it was too long. `cut_off`: the
connection ends in the middle. `garbage`: a meaningless text. `noise`: bytes that are not the protocol. `empty`: no
text. `refusal`: the model declines politely. `wrong_schema`: JSON of another schema. `injected`: the model obeys the
passages, question or claims: repeats them, names a foreign link, reveals its prompt; as a judge it agrees to
everything. `invented`: sentences with numbers that no passage has, among true ones. `doubtful`: a judge that misses
half of the request, so that the pipeline searches again.

Faults of real models with a few billion parameters: `looping` repeats the last line, or the last part of the form,
until it is cut. `sloppy` is right in the wrong format: without marks, twice, under headings, a line in Chinese; a form
in a code fence with words around it, percent signs, null, capitals and an extra field. `copied` repeats the reply of
the prompt's example turn instead of answering.
"""


SERVED = (
    *("simulated", "simulated-strong", "simulated-fallback", "simulated-embed"),
    *("qwen3:4b-instruct", "qwen3:30b-instruct", "bge-m3"),
)
"""Models of the tests, then those of the profile `ollama`."""


class Fault(FrozenModel):
    """A kind of failure, and the calls that fail.

    :param task: the calls that fail; all if None.
    :param model: the model that fails; any if empty.
    :param after: number of matching calls that succeed first.
    :param times: number of calls that fail then; 0: all of them.
    """

    kind: FaultKind
    task: Task | None = None
    model: str = ""
    after: int = Field(default=0, ge=0)
    times: int = Field(default=0, ge=0)


class Knobs(FrozenModel):
    """Behaviour of the simulator. Times are in milliseconds.

    :param tokens_per_second: rate after that; 0: all at once.
    :param call_ms: duration of a whole call, over which its tokens are spread evenly; 0: determined by the rate.
    :param loading_ms: time to load a model, which its first call starts. As in Ollama, the load is aborted when no
        caller waits for it any more.
    :param dimensions: numbers of a vector; 0: as many as the model of that name has, 384 for an unknown name.
    """

    first_token_ms: float = Field(default=0.0, ge=0, le=600_000)
    tokens_per_second: float = Field(default=0.0, ge=0)
    call_ms: float = Field(default=0.0, ge=0, le=600_000)
    loading_ms: float = Field(default=0.0, ge=0, le=600_000)
    faults: tuple[Fault, ...] = ()
    models: tuple[str, ...] = SERVED
    dimensions: int = Field(default=0, ge=0, le=65_536)

    @field_validator("dimensions")
    @classmethod
    def _check_dimensions(cls, value: int) -> int:
        if 0 < value < DIMENSIONS:
            raise ValueError(f"at least {DIMENSIONS}, or 0")
        return value

    def dimensions_of(self, model: str) -> int:
        return self.dimensions or known_dimensions(model) or DIMENSIONS
