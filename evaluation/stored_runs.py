"""Stored runs of the evaluation: every case with its result, and the measured state.

A run is one compressed JSON file under the data folder. Figures are always computed from its cases, so that two runs
are compared by the same code.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from evaluation.cases import Record
from pipelines import definition
from settings import ROOT, Settings
from tenants.core.errors import Invalid, NotFound

SCHEMA = "evaluation.v2"
_CODE = ("components", "pipelines", "tenants")
_SUFFIXES = frozenset({".py", ".yaml", ".json", ".npz", ".md"})
_ENDING = ".json.gz"

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class IndexState:
    """The knowledge base that was asked: its generation, its lexicon's revision, and how many chunks it had."""

    tenant: str
    generation: int
    revision: int
    chunks: int


@dataclass(frozen=True, slots=True)
class SetRun:
    """A measured set: questions, and the baseline's answers to them."""

    name: str
    locale: str
    seconds: float
    index: IndexState | None = None
    records: tuple[Record, ...] = ()
    reference: tuple[Record, ...] = ()

    @property
    def n(self) -> int:
        return len(self.records)


@dataclass(frozen=True, slots=True)
class State:
    """The measured state: version and digest of the code, engines, and the pipeline's digest and text.

    `parameters` are the pipeline's by step. `evaluators` names the class and model of each added evaluator, by figure.
    """

    code: str
    pipeline: str
    source: str
    parameters: Mapping[str, Mapping[str, object]]
    settings: Mapping[str, Scalar]
    evaluators: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    run_id: str
    created_at: datetime
    state: State
    sets: tuple[SetRun, ...]
    skipped: tuple[str, ...] = ()
    concurrency: int = 1
    schema: str = SCHEMA

    def by_name(self) -> dict[str, SetRun]:
        return {set_run.name: set_run for set_run in self.sets}


_RUN = TypeAdapter(Run)


def state(settings: Settings, pipeline: Path, evaluators: Mapping[str, str] = MappingProxyType({})) -> State:
    """Return the state that this process measures. Addresses and secrets in the settings are left out."""
    source, content = definition.source(pipeline), definition.load(pipeline)
    return State(
        code=f"{version('opora')}+{_code_digest()}",
        pipeline=sha256(source.encode()).hexdigest()[:12],
        source=source,
        parameters={name: step.get("init_parameters") or {} for name, step in content["components"].items()},
        settings={
            "index": "server" if settings.qdrant_url else "embedded",
            "records": settings.database.partition(":")[0],
            "workers": settings.workers,
        },
        evaluators=dict(evaluators),
    )


@lru_cache(maxsize=1)
def _code_digest() -> str:
    digest = sha256()
    for room in _CODE:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def new_id(names: str, moment: datetime | None = None) -> str:
    slug = "".join(letter if letter.isalnum() else "-" for letter in names)[:40].strip("-")
    return f"{moment or datetime.now(UTC):%Y%m%dT%H%M%S%f}-{slug}"


class Runs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "evaluation-runs"

    def save(self, run: Run) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{run.run_id}{_ENDING}"
        # No time of writing inside: the same run gives the same bytes.
        path.write_bytes(gzip.compress(_RUN.dump_json(run), mtime=0))
        return path

    def ids(self) -> list[str]:
        return sorted(path.name.removesuffix(_ENDING) for path in self.folder.glob(f"*{_ENDING}"))

    def load(self, name: str) -> Run:
        """Load a run by name: an id or its beginning, `latest`, `latest~1` for the one before it, or a file.

        :raises NotFound: `run_unknown`.
        :raises Invalid: `run_ambiguous`, or `run_unreadable`.
        """
        path = Path(name)
        if not path.is_file():
            path = self.folder / f"{self._named(name)}{_ENDING}"
        with Invalid("run_unreadable", run=name).instead_of(ValidationError, OSError, EOFError):
            return _RUN.validate_json(gzip.decompress(path.read_bytes()))

    def _named(self, name: str) -> str:
        ids = self.ids()
        if name.partition("~")[0] == "latest":
            back = name.partition("~")[2] or "0"
            if back.isdigit() and int(back) < len(ids):
                return ids[-1 - int(back)]
            raise NotFound("run_unknown", run=name)
        matching = [run_id for run_id in ids if run_id.startswith(name)]
        if not matching:
            raise NotFound("run_unknown", run=name)
        if len(matching) > 1 and name not in matching:
            raise Invalid("run_ambiguous", run=name, runs=", ".join(matching[-5:]))
        return name if name in matching else matching[0]
