"""A chat written down, for its customer to keep."""

from collections.abc import Iterator

from components.language.texts import text, text_or
from tenants.chats import store
from tenants.chats.records import Chat, Line

_MAX_MESSAGES = 10_000


def written(chat: Chat, *, notes: bool = False) -> str:
    """Return the whole chat, a line for who speaks and when, and another for what they say.

    :param notes: operators' notes too; never for a customer.
    """
    title = text("chats.transcript.title", chat.locale, day=f"{chat.created_at:%Y-%m-%d}", chat_id=chat.chat_id)
    return "\n".join([title, *_lines(chat, notes=notes)]) + "\n"


def _lines(chat: Chat, *, notes: bool) -> Iterator[str]:
    for one in store.lines(chat.chat_id, limit=_MAX_MESSAGES, notes=notes):
        words = _event(one, chat.locale) if one.kind == "event" else "\n".join(_words(one, chat.locale))
        if words:
            yield f"\n[{one.created_at:%Y-%m-%d %H:%M} UTC] {_author(one, chat.locale)}\n{words}"


def _words(line: Line, locale: str) -> Iterator[str]:
    if line.file is not None:
        yield text("chats.transcript.file", locale, name=line.file)
    if line.text:
        yield line.text


def _author(line: Line, locale: str) -> str:
    return line.name or text(f"chats.author.{line.author}", locale)


def _event(line: Line, locale: str) -> str:
    if line.text:
        return line.text
    return text_or("", f"chats.event.{line.event}", locale, name=line.name)
