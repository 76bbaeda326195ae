"""Ingestion pages: files and websites from the browser, and the status of each."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Form, Query, Request
from starlette.responses import Response

from components.language.texts import text, text_or
from pipelines import problems
from pipelines.desk_gate import CSRF_FIELD
from pipelines.ingest import jobs as loading
from pipelines.ingest.receiving import take
from pipelines.routes import OpenRouter, opens
from tenants.core.errors import OporaError, TooLarge
from tenants.knowledge import documents
from tenants.work import jobs
from tenants.work.jobs import Job
from ui.desk import document_view
from ui.desk.rendering import Desk, back_to, or_again, reader_locale

_JOBS = "/desk/jobs"
_PAGE = 20
_FIELDS = frozenset({CSRF_FIELD.encode()})
_LINKED = 200
"""Maximum number of files of a job that link to their documents."""

_Then: TypeAlias = Annotated[Literal["job", "welcome"], Query()]


@dataclass(frozen=True, slots=True)
class Refused:
    where: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class JobView:
    """Job for display.

    :param counts: documents by result; empty until the job has ended.
    :param loaded: files loaded completely; `documents` are those with a document of the same name.
    """

    job: Job
    counts: Mapping[str, int]
    refused: tuple[Refused, ...]
    flagged: Mapping[str, tuple[str, ...]]
    loaded: tuple[str, ...]
    documents: frozenset[str]
    why: str


def router(desk: Desk) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=10_000, page=True, include_in_schema=False)

    def adding(refused: OporaError | None = None, url: str = "") -> Response:
        fault = _why_not(refused) if refused else ""
        limit = desk.settings.max_files_bytes
        return desk.page("documents/add.html", refused, section="documents", url=url, limit=limit, fault=fault)

    @endpoints.get("/desk/documents/add")
    def show_forms() -> Response:
        return adding()

    @endpoints.post("/desk/documents/upload")
    @opens(limit=desk.settings.max_files_bytes, files=True)
    async def upload(request: Request, then: _Then = "job") -> Response:
        try:
            taken = await take(request, fields=_FIELDS)
        except TooLarge:
            raise
        except OporaError as refused:
            return await asyncio.to_thread(adding, refused)
        return _go_on(taken["job_id"], then)

    @endpoints.post("/desk/documents/site")
    @or_again(lambda refused, url, **_: adding(refused, url), OporaError)
    def load_site(url: Annotated[str, Form(max_length=2_000)] = "", then: _Then = "job") -> Response:
        return _go_on(loading.add_site(url).job_id, then)

    @endpoints.get(_JOBS)
    def list_jobs(before: Annotated[str, Query(max_length=32)] = "") -> Response:
        page = jobs.latest(limit=_PAGE + 1, before=before.replace("\0", "") or None)
        following = page[_PAGE - 1].job_id if len(page) > _PAGE else ""
        return desk.page("documents/jobs.html", section="documents", jobs=page[:_PAGE], following=following)

    @endpoints.get("/desk/jobs/{job_id}")
    def show_job(job_id: str) -> Response:
        return desk.page("documents/job.html", section="documents", view=view(jobs.get(job_id)))

    @endpoints.post("/desk/jobs/{job_id}/cancel")
    def cancel(job_id: str) -> Response:
        loading.cancel(job_id)
        return back_to(f"{_JOBS}/{job_id}")

    return endpoints


def view(job: Job) -> JobView:
    locale = reader_locale()
    report: dict[str, Any] = dict(job.report or {})  # empty, or that of a rebuild, before and without an ingestion
    errors = report.get("errors", [])
    refused = tuple(_refused(error, locale) for error in errors)
    touched = {one.where for one in refused} | {error.get("source") for error in errors}
    ended = job.state == "done" and job.kind == "upload"
    loaded = tuple(name for name in job.files if name not in touched) if ended else ()
    flagged = {one["doc_id"]: document_view.flag_texts(one["flags"], locale) for one in report.get("flagged", [])}
    known = documents.find([*loaded[:_LINKED], *list(flagged)[:_LINKED]])
    return JobView(
        job=job,
        counts={name: report.get(name, 0) for name in ("added", "updated", "unchanged", "refused") if report},
        refused=refused,
        flagged=flagged,
        loaded=loaded,
        documents=frozenset(known),
        why=_reason(job.error, {}, locale) if job.error else "",
    )


def _go_on(job_id: str, then: str) -> Response:
    return back_to("/desk/welcome" if then == "welcome" else f"{_JOBS}/{job_id}")


def _why_not(refused: OporaError) -> str:
    if refused.code == "field_missing":
        return text("desk.documents.jobs.no_files", reader_locale())
    return problems.detail(refused)


def _refused(error: Mapping[str, Any], locale: str) -> Refused:
    where = error.get("doc_id") or error.get("source") or ""
    return Refused(where, error.get("line") or 0, _reason(error["code"], error["params"], locale))


def _reason(code: str, params: Mapping[str, Any], locale: str) -> str:
    words = text_or(text("desk.documents.jobs.failed", locale, code=code), f"service.{code}.detail", locale, **params)
    return text_or(words, f"cli.refusal.{code}", locale, **params)
