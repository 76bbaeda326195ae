"""Ingestion pages: files and websites from the browser, and the status of each."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from fastapi import Form, Query, Request
from starlette.responses import Response

from components.language.texts import text
from pipelines import problems
from pipelines.ingest import jobs as loading
from pipelines.ingest.receiving import take
from pipelines.pages import CSRF_FIELD
from pipelines.routes import OpenRouter, opens
from tenants.core.errors import OporaError, TooLarge
from tenants.knowledge import documents
from tenants.work import jobs
from tenants.work.jobs import Job
from ui.desk import document_view
from ui.desk.view import Desk, back_to

SCOPE = "ingest"
_ADD = "/desk/documents/add"
_UPLOAD = "/desk/documents/upload"
_SITE = "/desk/documents/site"
_JOBS = "/desk/jobs"
_JOB = "/desk/jobs/{job_id}"
_CANCEL = "/desk/jobs/{job_id}/cancel"
_FORM_BYTES = 10_000
_PAGE = 20
_FIELDS = frozenset({CSRF_FIELD.encode()})
_LINKED = 200
"""Maximum number of files of a job that link to their documents."""

_Then: TypeAlias = Annotated[Literal["job", "welcome"], Query()]


@dataclass(frozen=True, slots=True)
class Refused:
    """Rejected file or page, and the reason."""

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
    done: int
    total: int
    counts: Mapping[str, int]
    refused: tuple[Refused, ...]
    flagged: Mapping[str, tuple[str, ...]]
    loaded: tuple[str, ...]
    documents: frozenset[str]
    why: str


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(SCOPE, limit=_FORM_BYTES, page=True, include_in_schema=False)

    def adding(status: int = 200, **values: object) -> Response:
        given = {"fault": "", "url": "", "limit": desk.settings.max_files_bytes}
        return desk.page("documents/add.html", status, section="documents", **{**given, **values})

    @endpoints.get(_ADD)
    def show_forms() -> Response:
        return adding()

    @endpoints.post(_UPLOAD)
    @opens(limit=desk.settings.max_files_bytes, files=True)
    async def upload(request: Request, then: _Then = "job") -> Response:
        try:
            taken = await take(request, fields=_FIELDS)
        except TooLarge:
            raise
        except OporaError as refused:
            return await asyncio.to_thread(adding, refused.status, fault=_why_not(refused))
        return _go_on(taken["job_id"], then)

    @endpoints.post(_SITE)
    def load_site(url: Annotated[str, Form(max_length=2_000)] = "", then: _Then = "job") -> Response:
        try:
            return _go_on(loading.add_site(url).job_id, then)
        except OporaError as refused:
            return adding(refused.status, fault=_why_not(refused), url=url)

    @endpoints.get(_JOBS)
    def list_jobs(before: Annotated[str, Query(max_length=32)] = "") -> Response:
        page = jobs.latest(limit=_PAGE + 1, before=before.replace("\0", "") or None)
        following = page[_PAGE - 1].job_id if len(page) > _PAGE else ""
        return desk.page("documents/jobs.html", section="documents", jobs=page[:_PAGE], following=following)

    @endpoints.get(_JOB)
    def show_job(job_id: str) -> Response:
        return desk.page("documents/job.html", section="documents", view=view(jobs.get(job_id)))

    @endpoints.post(_CANCEL)
    def cancel(job_id: str) -> Response:
        loading.cancel(job_id)
        return back_to(f"{_JOBS}/{job_id}")

    return endpoints


def view(job: Job) -> JobView:
    """Return a job with the state of its files, in the reader's language."""
    locale = problems.caller.get().locale
    report = job.report or {}
    errors = _objects(report.get("errors"))
    refused = tuple(_refused(error, locale) for error in errors)
    touched = {one.where for one in refused} | {str(error.get("source")) for error in errors}
    ended = job.state == "done" and job.kind == "upload"
    loaded = tuple(name for name in job.files if name not in touched) if ended else ()
    flagged = {
        str(one.get("doc_id")): document_view.flag_texts(_words(one.get("flags")), locale)
        for one in _objects(report.get("flagged"))
    }
    known = documents.find([*loaded[:_LINKED], *list(flagged)[:_LINKED]])
    return JobView(
        job=job,
        done=_number(job.progress.get("documents")),
        total=_number(job.progress.get("total")),
        counts={name: _number(report.get(name)) for name in ("added", "updated", "unchanged", "refused")}
        if report
        else {},
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
        return text("desk.documents.jobs.no_files", problems.caller.get().locale)
    return problems.detail(refused)


def _refused(error: Mapping[str, object], locale: str) -> Refused:
    params = error.get("params")
    known = {str(name): value for name, value in params.items()} if isinstance(params, Mapping) else {}
    where = str(error.get("doc_id") or error.get("source") or "")
    return Refused(where, _number(error.get("line")), _reason(str(error.get("code")), known, locale))


def _reason(code: str, params: Mapping[str, object], locale: str) -> str:
    plain = {name: value for name, value in params.items() if isinstance(value, str | int | float)}
    for key in (f"cli.refusal.{code}", f"service.{code}.detail"):
        try:
            return text(key, locale, **plain)
        except KeyError:
            continue
    return text("desk.documents.jobs.failed", locale, code=code)


def _objects(value: object) -> list[Mapping[str, object]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _words(value: object) -> Iterable[str]:
    return map(str, value) if isinstance(value, list) else ()


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
