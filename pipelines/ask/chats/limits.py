"""Limits for customers: message rate and permitted content."""

from pipelines.ask.chats.conversations import Conversations
from settings import get_settings
from tenants.accounts.policy import Policy
from tenants.chats.sites import Site


async def admit_message(conversations: Conversations, chat_id: str) -> None:
    """Count a message, or a file, of the caller in a chat. Raises `RateLimited`."""
    limiter = conversations.runner.limiter
    if limiter is not None:
        await limiter.admit_each({f"messages of chat {chat_id}": get_settings().chat_messages_per_minute})


def file_limit(site: Site | None, rules: Policy) -> int:
    """Bytes of a file that a customer may send; 0: none.

    :param site: where the chat is; None for one without a site.
    """
    allowed = rules.chat_files and (site is None or site.config.files)
    return rules.chat_file_bytes if allowed else 0
