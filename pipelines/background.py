"""Background work of an installation: its tasks and their schedule."""

from datetime import UTC, datetime
from functools import partial
from threading import Event

from pipelines.ask.chats import timeout_sweep
from pipelines.ask.chats.delivery import WebhookDelivery
from pipelines.ask.chats.mailbox import Mailbox
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ingest import folder
from pipelines.ingest.library import Library
from pipelines.ingest.maintenance import NEVER, Mender, NightlyCheck
from pipelines.ingest.tenant_jobs import TenantJobs
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.chats import files, outbox, timeouts
from tenants.core.context import working_for
from tenants.privacy import chat_people, retention
from tenants.storage import bus, database
from tenants.work import jobs, queue, uploads
from tenants.work.queue import Periodic, Queue, TenantTask


class Background:
    """Runs the background work in this process, beside others or alone."""

    def __init__(self, settings: Settings, ingest: Ingest, library: Library, evaluations: Evaluation) -> None:
        self._delivery = WebhookDelivery()
        task = TenantTask(
            "ingest", jobs.tenants_waiting, lambda tenant_id: TenantJobs(tenant_id, ingest, settings.watch_dir)
        )
        deliver = self._delivery.start_due
        periodic = [
            Periodic(
                "deliveries", lambda _: deliver(), every=_delivery_seconds(settings), at_start=True, wake=outbox.arrived
            ),
            Periodic("chats", timeout_sweep.sweep, every=30),
            Periodic("evaluations", lambda _: evaluations.start_due(), every=60),
            Periodic("mending", Mender(library).run, every=600, at_start=True, wake=index.damage_noticed),
            Periodic("tidying", tidy, every=3_600, at_start=True),
            Periodic("audit-pruning", partial(store.prune_all, settings), hour=1, at_start=True),
        ]
        if settings.check_hour != NEVER:
            periodic.append(Periodic("nightly-check", NightlyCheck(library).check_all, hour=settings.check_hour))
        if settings.imap_host:
            mailbox = Mailbox(settings)
            periodic.append(Periodic("mailbox", lambda closing: _looked(mailbox, closing), every=settings.imap_seconds))
        if settings.watch_dir is not None:
            watcher = folder.Watcher(settings.watch_dir)
            periodic.append(Periodic("watching", lambda _: watcher.look(), every=folder.POLL_SECONDS, at_start=True))
        self._queue: Queue = queue.create(settings, [task], periodic)

    def warm_up(self) -> None:
        """Begin, with the work that the last process left."""
        self._queue.warm_up()

    def close(self) -> None:
        """Begin nothing new, and finish what is being written. Jobs wait for the next start, or for other processes."""
        self._queue.close()
        self._delivery.close()


def tidy(closing: Event, now: datetime | None = None) -> None:
    now = now or datetime.now(UTC)
    retention.prune(now, closing)
    with_chats = timeouts.tenants_with_chats()
    for tenant in Registry().list():
        if closing.is_set():
            return
        with working_for(tenant.tenant_id, "jobs"):
            if tenant.tenant_id in with_chats:
                files.prune(now)
                chat_people.prune(now, closing)
            for job_id in uploads.abandoned():
                uploads.remove(job_id)


def _delivery_seconds(settings: Settings) -> int:
    """Return the interval of looks for due deliveries. On a server each look is a job, so they are fewer; with Redis,
    processes tell each other of new deliveries."""
    if bus.is_shared(settings):
        return 10
    return 2 if database.is_shared(settings) else 1


_LOOKS = 10
"""Looks into a mailbox in a row, before other work of the process has a turn."""


def _looked(mailbox: Mailbox, closing: Event) -> None:
    for _ in range(_LOOKS):
        mailbox.look(closing)
        if not mailbox.has_more:
            return
