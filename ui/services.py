"""The objects that the endpoints and pages of one process share. Built once, in `create_app`."""

from dataclasses import dataclass

from pipelines.ask.articles.usecase import Articles
from pipelines.ask.chats.customer_chats import Conversations
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.runner import Runner
from pipelines.fair_requests import Reads
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.access.quotas import RateLimiter
from tenants.chats.visitors import Visitors
from ui.passwords import Passwords


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    runner: Runner
    limiter: RateLimiter
    visitors: Visitors
    conversations: Conversations
    ingest: Ingest
    library: Library
    articles: Articles
    evaluations: Evaluation
    passwords: Passwords
    reads: Reads
