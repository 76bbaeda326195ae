"""A chat written down, for its customer to keep."""

from collections.abc import Iterator, Mapping

from components.language.texts import text
from tenants.chats import store
from tenants.chats.records import Chat, Message

_MAX_MESSAGES = 10_000


def written(chat: Chat, *, notes: bool = False) -> str:
    """Return the whole chat, a line for who speaks and when, and another for what they say.

    :param notes: operators' notes too; never for a customer.
    """
    title = text("chats.transcript.title", chat.locale, day=f"{chat.created_at:%Y-%m-%d}", chat_id=chat.chat_id)
    return "\n".join([title, *_lines(chat, notes=notes)]) + "\n"


def _lines(chat: Chat, *, notes: bool) -> Iterator[str]:
    for one in store.messages(chat.chat_id, limit=_MAX_MESSAGES, notes=notes):
        words = _event(one, chat.locale) if one.kind == "event" else "\n".join(_words(one, chat.locale))
        if words:
            yield f"\n[{one.created_at:%Y-%m-%d %H:%M} UTC] {_author(one, chat.locale)}\n{words}"


def _words(message: Message, locale: str) -> Iterator[str]:
    file = message.body.get("file")
    if isinstance(file, Mapping):
        yield text("chats.transcript.file", locale, name=str(file["name"]))
    if message.text:
        yield message.text


def _author(message: Message, locale: str) -> str:
    return message.name or text(f"chats.author.{message.author}", locale)


def _event(message: Message, locale: str) -> str:
    if message.text:
        return message.text
    event = str(message.body["event"])
    try:
        return text(f"chats.event.{event}", locale, name=message.name)
    except KeyError:
        # What only the widget cares about, such as that an answer was asked for again.
        return ""
