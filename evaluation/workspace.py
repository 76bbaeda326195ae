"""Evaluation's own data folder, apart from the tenants that people use, kept so that a second run is quick."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from components.embed.install import installed
from components.ingest.document import SourceDocument
from evaluation.cases import Corpus
from evaluation.metrics.reference import Reference
from evaluation.metrics.shown import passages
from pipelines.ingest.usecase import Ingest
from settings import ROOT, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as

_MAKES_CHUNKS = (
    "components/embed",
    "components/ingest",
    "components/language/encoder.py",
    "components/language/identifiers.py",
    "components/language/normalise.py",
    "components/language/sentences.py",
    "components/language/words.py",
    "pipelines/ingest",
    "tenants/index",
    "evaluation/benchmarks/synthetic.py",
)
_MAX_AGE_SECONDS = 86_400
SUBJECT = "evaluation"


def enter(shelf: Path) -> Path:
    """Point this process at a data folder on `shelf`, embedded engines included, and disable the question limits.

    The folder's name is a digest of the chunking code and of the installed encoder, so a change there starts afresh;
    folders that were not used for a day are removed. Call before this process opens the records or the index.
    """
    folder = shelf.resolve() / _code_digest()
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in folder.parent.iterdir():
        if other != folder and other.stat().st_mtime < time.time() - _MAX_AGE_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
    os.environ |= {
        "OPORA_DATA_DIR": str(folder),
        "OPORA_MODELS_DIR": str(get_settings().models),
        "OPORA_DATABASE_URL": "",
        "OPORA_QDRANT_URL": "",
        "OPORA_RATE_LIMIT_PER_MINUTE": "0",
        "OPORA_RATE_LIMIT_PER_DAY": "0",
    }
    get_settings.cache_clear()
    return folder


def _code_digest() -> str:
    digest = hashlib.sha256()
    for place in map(ROOT.joinpath, _MAKES_CHUNKS):
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.suffix in {".py", ".yaml"}:
                digest.update(path.read_bytes())
    model = installed(get_settings().models)
    digest.update(model.folder.name.encode() if model else b"")
    return digest.hexdigest()[:12]


def tenant_for(corpus: Corpus, progress: Callable[[int, int], None]) -> Tenant:
    """Return the tenant with the corpus; index it by the product's own ingestion if needed.

    Its id carries a digest of the articles, so that a changed corpus is another tenant.
    """
    articles = list(corpus.documents())
    tenant = Tenant(f"{corpus.name}-{_digest(articles)}", subject=SUBJECT, scopes=SCOPES)
    registry = Registry()
    if not registry.exists(tenant.tenant_id):
        registry.add(tenant.tenant_id, name=corpus.name, locale=corpus.locale)
    with acting_as(tenant):
        Ingest().run(articles, progress=lambda status: progress(status.documents, status.total))
    return tenant


def reference() -> Reference:
    return Reference(passages().values())


def _digest(articles: list[SourceDocument]) -> str:
    digest = hashlib.sha256()
    for article in articles:
        digest.update(repr(article).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:8]
