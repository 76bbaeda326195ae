"""The models of a profile in the form of a Haystack chat generator, for Haystack's own components that call one."""

import json
from collections.abc import Mapping
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage

from components.faults import degraded
from components.models.chat import ChatModels
from components.models.failures import Malformed, ModelFailed
from components.models.structured import json_object
from components.serialisation import Nested


@component
class SharedChatGenerator(Nested):
    """Call the profile's models, so that their limits, prices and pauses also apply to one of Haystack's components.

    :param models: the models called, the fast one first.
    :param step: name of the call in traces and costs.
    :param schema: the JSON schema of the replies; None for text.
    """

    def __init__(self, models: ChatModels, step: str, schema: Mapping[str, Any] | None = None) -> None:
        self.models = models
        self.step = step
        self.schema = schema

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        """Return one reply.

        :raises ModelFailed: no model answered, or not in JSON; the turn is degraded by the name of the step.
        """
        try:
            reply = self._reply(messages)
        except ModelFailed as error:
            degraded(self.step, error)
            raise
        return {"replies": [ChatMessage.from_assistant(reply)]}

    def _reply(self, messages: list[ChatMessage]) -> str:
        reply = self.models.ask(messages, step=self.step, prompt=self.step, temperature=0.0, schema=self.schema)
        if self.schema is None:
            return reply
        form = json_object(reply)
        if not isinstance(form, dict) or not form.keys() >= set(self.schema.get("required", ())):
            raise Malformed
        return json.dumps(form, ensure_ascii=False)

    def close(self) -> None:
        """Close the connections to the models."""
        self.models.close()
