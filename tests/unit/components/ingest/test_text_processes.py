"""Worker processes return the same results as this process, and none of them blocks the others for ever."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from components.ingest.cut import cut_all
from components.ingest.document import Revision, SourceDocument
from components.ingest.pack import Sizes
from components.ingest.split import DocumentSplitter
from components.ingest.text_processes import TextProcesses
from tenants.core.errors import CallerError

SIZES = Sizes(200, 500, 50, 50)
PARAGRAPH = "Код E20 означает, что вода не сливается. Проверьте фильтр насоса и шланг. "
DOCUMENTS = [
    SourceDocument(f"d{at}", f"Статья {at}", "\n\n".join(f"## Раздел {at}.{n}\n\n{PARAGRAPH * 9}" for n in range(9)))
    for at in range(12)
]


@pytest.fixture(scope="module")
def processes() -> Iterator[TextProcesses]:
    created = TextProcesses()
    yield created
    created.close()


def test_workers_cut_documents_like_this_process_and_in_order(processes: TextProcesses) -> None:
    assert processes.cut(DOCUMENTS, SIZES) == cut_all(DOCUMENTS, SIZES)
    assert processes._idle
    assert processes.cut([], SIZES) == []


def test_a_slow_text_is_refused() -> None:
    # No worker is even up in so short a time.
    hurried = TextProcesses(workers=1, seconds=0.01)
    results = hurried.cut([replace(DOCUMENTS[0], text=PARAGRAPH * 400), DOCUMENTS[1]], SIZES)
    assert [one.code for one in results if isinstance(one, CallerError)] == ["file_too_slow"] * 2


def test_a_document_that_cannot_be_cut_is_refused_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    hurried = TextProcesses(workers=1, seconds=0.01)
    monkeypatch.setattr("components.ingest.split.TEXT_PROCESSES", hurried)
    splitter = DocumentSplitter()
    slow = Revision(replace(DOCUMENTS[0], text=PARAGRAPH * 400, source="slow.md"), "hash")
    refused = splitter.run([slow])
    assert [(one.error.code, one.source, one.doc_id) for one in refused["refusals"]] == [
        ("file_too_slow", "slow.md", "d0")
    ]
    assert refused["revisions"] == []
    assert splitter.run([Revision(DOCUMENTS[1], "hash")])["refusals"] == []


_TAKEN_OVER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from tests.unit.components.ingest.misbehaving import text_main; text_main()"
)


@pytest.fixture(scope="module")
def taken_over() -> Iterator[TextProcesses]:
    created = TextProcesses(workers=1)
    created.program = _TAKEN_OVER
    yield created
    created.close()


@pytest.mark.parametrize(
    "attack",
    ["nest", "shorten", "add rm", "fail os.system", f"steal {uuid4()}", "rewrite Позвоните нам", "overreach"],
)
def test_an_invalid_worker_answer_refuses_the_document(taken_over: TextProcesses, attack: str) -> None:
    (refused,) = taken_over.cut([replace(DOCUMENTS[0], title=attack, text=PARAGRAPH * 400)], SIZES)
    assert isinstance(refused, CallerError)
    assert refused.code == "file_damaged"


def test_nothing_that_a_worker_answers_is_run(taken_over: TextProcesses, tmp_path: Path) -> None:
    target = tmp_path / "touched"
    taken_over.cut([replace(DOCUMENTS[0], title=f"pickle {target}", text=PARAGRAPH * 400)], SIZES)
    assert not target.exists()
