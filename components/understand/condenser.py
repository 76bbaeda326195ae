"""Follow-up questions completed by a language model."""

from collections.abc import Sequence

from components.models.chat import ChatModels
from components.models.prompts import block
from components.models.structured import Form, fill
from components.serialisation import Nested
from components.turn import Exchange

_MAX_LENGTH = 300


class CondensedForm(Form):
    """The last message as a question that can be understood without the conversation."""

    question: str


class LlmCondenser(Nested):
    """Rewrite a customer's last message as a standalone question.

    :param models: the models asked, always the `fast` one.
    """

    def __init__(self, models: ChatModels) -> None:
        self.models = models

    def condense(self, question: str, history: Sequence[Exchange], locale: str) -> str:
        """Return the standalone question; empty if the message is already self-contained.

        :raises ModelFailed: no model returned a valid form.
        """
        form = fill(
            CondensedForm,
            self.models,
            self.models.prompt("condense", locale),
            values={"history": block("history", transcript(history)), "question": block("question", question)},
            step="condense",
            tier="fast",
        )
        condensed = " ".join(form.question.split())[:_MAX_LENGTH]
        return "" if condensed == question else condensed


def transcript(history: Sequence[Exchange]) -> list[str]:
    """Return the conversation as lines: the customer's questions and a person's replies."""
    lines = []
    for exchange in history:
        lines.append(f"- {exchange.question}")
        if exchange.options:
            lines.append(f"  ? {' | '.join(exchange.options)}")
        if exchange.reply:
            lines.append(f"  > {exchange.reply}")
    return lines
