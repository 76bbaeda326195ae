"""An article from a chat: what the customer asked, and what a person answered, as a draft to go on with."""

from collections.abc import Sequence

from components.language.personal import mask
from pipelines.ask.articles.usecase import drafted
from tenants.chats import store
from tenants.chats.records import Author, Message
from tenants.core.errors import Invalid
from tenants.desk import articles
from tenants.desk.articles import MAX_QUESTION_LENGTH, MAX_TEXT_LENGTH, MAX_TITLE_LENGTH, Article


def write(chat_id: str) -> Article:
    """A draft from a chat; the one that there is already, where somebody has begun it.

    The question is the customer's longest message before a person answered: the last one is often "Are you there?".
    Phone numbers and the like are masked on the way, since customers will read what becomes of it.

    :raises NotFound: `chat_unknown`.
    :raises Invalid: `chat_without_question`, where the customer has written nothing.
    """
    chat = store.get(chat_id)
    begun = articles.of_chat(chat_id)
    if begun is not None:
        return begun
    messages = store.recent(chat_id)
    replies = _texts(messages, "operator")
    first = next((at for at, one in enumerate(messages) if one.author == "operator" and one.kind == "text"), None)
    asked = _texts(messages[:first], "customer") or _texts(messages, "customer")
    if not asked:
        raise Invalid("chat_without_question")
    question = " ".join(mask(max(asked, key=len)).split())
    text = mask("\n\n".join(replies))[:MAX_TEXT_LENGTH]
    draft = drafted(question[:MAX_TITLE_LENGTH], text, [question[:MAX_QUESTION_LENGTH]])
    return articles.add(draft, chat_id=chat.chat_id)


def _texts(messages: Sequence[Message], author: Author) -> list[str]:
    return [one.text for one in messages if one.author == author and one.kind == "text" and one.text.strip()]
