"""An article from a chat: what the customer asked, and what a person answered, as a draft to go on with."""

from collections.abc import Mapping, Sequence

from components.language.personal import mask
from components.turn import UNANSWERED
from pipelines.ask.articles.usecase import drafted
from pipelines.ask.chats.customer_chats import USER_REQUEST
from tenants.chats import store
from tenants.chats.records import Author, Message
from tenants.core.errors import Invalid
from tenants.desk import articles
from tenants.desk.articles import MAX_QUESTION_LENGTH, MAX_TEXT_LENGTH, MAX_TITLE_LENGTH, Article


def write(chat_id: str) -> Article:
    """Create a draft from a chat, or return the existing one.

    Take the customer's last question that the assistant could not answer, or else the longest message before a person
    answered: the last message is often "Are you there?". Mask phone numbers and the like, since customers will read the
    article.

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
    question = " ".join(mask(_unanswered(messages[:first]) or max(asked, key=len)).split())
    text = mask("\n\n".join(replies))[:MAX_TEXT_LENGTH]
    draft = drafted(question[:MAX_TITLE_LENGTH], text, [question[:MAX_QUESTION_LENGTH]])
    return articles.add(draft, chat_id=chat.chat_id)


def _unanswered(messages: Sequence[Message]) -> str:
    """Return the customer's last question that the assistant could not answer, or an empty string."""
    question = found = ""
    for one in messages:
        if one.author == "customer" and one.kind == "text":
            question = one.text
        elif one.author == "bot" and _gave_no_answer(one.body.get("turn")):
            found = question
    return found


def _gave_no_answer(turn: object) -> bool:
    if not isinstance(turn, Mapping):
        return False
    outcome, reason = turn.get("outcome"), turn.get("refusal_reason")
    # Asking for a person is no question.
    return outcome in UNANSWERED or (outcome == "human_followup" and reason != USER_REQUEST)


def _texts(messages: Sequence[Message], author: Author) -> list[str]:
    return [one.text for one in messages if one.author == author and one.kind == "text" and one.text.strip()]
