"""`opora worker`: background work in a separate process."""

import logging
import signal
from threading import Event

import typer

from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.usecase import Ask
from pipelines.background import Background
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants import index
from tenants.access import installation
from tenants.backup import restoring
from tenants.storage import bus, database, sealed
from tenants.work import locks, queue
from ui.api import host
from ui.cli.model import fetch_encoder
from ui.cli.terminal import message

log = logging.getLogger("opora.queue")


def worker() -> None:
    """Run background work until SIGTERM or Ctrl-C: imports, rebuilds, deliveries, chat timers, retention and checks."""
    settings = get_settings()
    queue.check_shared(settings)
    restoring.check_finished(settings)
    sealed.check_given(settings)
    database.check(settings)
    installation.check_secrets(settings)
    installation.check_files(settings)
    fetch_encoder()
    host.configure_logging(settings)
    ask, ingest = Ask(), Ingest()
    library = Library(ingest.rewrite)
    evaluations = Evaluation(ask)
    background = Background(settings, ingest, library, evaluations)
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    bus.listen(settings)
    ask.warm_up()
    ingest.warm_up()
    background.warm_up()
    typer.echo(message("worker.ready"), err=True)
    stopped.wait()
    background.close()
    evaluations.close()
    ask.close()
    for close_all in (bus.close_all, locks.close_all, index.close_all, database.close_all):
        close_all()
    log.info("closed")
