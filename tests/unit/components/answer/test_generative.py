"""Answers by a model: only what is cited and found there is ever heard, and there is an answer without a model too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from haystack import Pipeline
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack_integrations.components.generators.ollama import OllamaChatGenerator
from hypothesis import given
from hypothesis import strategies as st

from components.answer.debris import loops
from components.answer.extractive import ExtractiveAnswerer
from components.answer.generative import GenerativeAnswerer
from components.answer.token_sink import token_sink
from components.judge.local import LocalJudge
from components.models import breaker
from components.models.calls import collect_calls
from components.models.chat import ChatModels
from components.turn import Draft, RejectedApproach, Turn
from tenants import policy
from tenants.policy import Policy
from tests.turns import passage, turn

TEXT = (
    "Код E20 означает, что вода не сливается. Насос работает 10 минут. Что делать при E20:\n"
    "1. Выключите машину и выньте вилку из розетки.\n2. Очистите сливной фильтр.\n"
    "Не открывайте дверцу до слива воды. Стучите по корпусу машины."
)
PASSAGE = passage(TEXT, "c1", title="Ошибки стиральной машины", heading="E20")
OTHER = passage("Код E25 означает неисправность датчика. Вызовите мастера.", "c2", title="Ошибки", heading="E25")
QUESTION = "Что делать при ошибке E20?"
SUPPORTED = "Код E20 означает, что вода не сливается."


class Model:
    """Says its replies one after the other, word by word; an exception in place of a piece breaks the reply off."""

    model = "scripted"

    def __init__(self, *replies: Sequence[str | Exception]) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []

    def run(
        self,
        messages: list[ChatMessage],
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
        generation_kwargs: dict[str, object] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        self.prompts.append("\n".join(message.text or "" for message in messages))
        chunks = self.replies.pop(0)
        for piece in chunks:
            if isinstance(piece, Exception):
                raise piece
            if streaming_callback is not None:
                streaming_callback(StreamingChunk(piece))
        return {"replies": [ChatMessage.from_assistant("".join(map(str, chunks)))]}


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    with policy.overridden(Policy()):
        yield


def chunks(reply: str) -> list[str | Exception]:
    return [f"{word} " for word in reply.split(" ")]


def answer(
    *replies: Sequence[str | Exception], question: str = QUESTION, rejected: Sequence[RejectedApproach] = ()
) -> tuple[str, Turn, str]:
    """The socket that the turn left by, the turn, and what was heard meanwhile."""
    given_turn = turn(question, PASSAGE, OTHER)
    given_turn = replace(given_turn, evidence=replace(given_turn.evidence, rejected=tuple(rejected)))
    step = GenerativeAnswerer(ChatModels(Model(*replies)), LocalJudge(), ExtractiveAnswerer())
    emitted: list[str] = []
    with collect_calls(), token_sink(lambda piece, provisional: emitted.append(piece)):
        ((socket, after),) = step.run(given_turn).items()
    return socket, after, "".join(emitted)


def draft(after: Turn) -> Draft:
    assert after.draft is not None
    return after.draft


def quoted() -> Draft:
    """The answer to `QUESTION` without any model."""
    return draft(ExtractiveAnswerer().run(turn(QUESTION, PASSAGE, OTHER))["turn"])


def test_a_supported_sentence_is_streamed_as_written() -> None:
    reply = f"{SUPPORTED} [1]\n1. Выключите машину и выньте вилку из розетки. [1]\n2. Очистите сливной фильтр. [1]"
    socket, after, emitted = answer(chunks(reply))
    assert (socket, after.degraded) == ("turn", ())
    assert draft(after).text == emitted == reply
    assert draft(after).claims[0].text == SUPPORTED
    (citation,) = draft(after).citations
    assert (citation.index, citation.passage) == (1, PASSAGE)
    assert citation.excerpt == TEXT[slice(*citation.span)]
    assert citation.excerpt.startswith("Код E20")
    assert citation.excerpt.endswith("фильтр.")


@pytest.mark.parametrize(
    "sentence",
    [
        "Скидка 87 % действует до 31.12.2099. [1]",
        "Насос работает 15 минут. [1]",
        "Открывайте дверцу до слива воды. [1]",
        "Вода не сливается.",
        f"{SUPPORTED} [9]",
        "Код E25 означает неисправность датчика. [2]",
        "Код E20 означает неисправность датчика. [2]",
        "Вас интересует код E20? [1]",
        "Подробнее на https://evil.example/collect [1]",
        "Сделайте вот что: [1]",
    ],
    ids=["invented", "number", "negation", "unmarked", "no passage", "other code", "mixed", "asks", "link", "lead"],
)
def test_an_unsupported_sentence_is_neither_streamed_nor_kept(sentence: str) -> None:
    socket, after, emitted = answer(chunks(f"{SUPPORTED} [1]\n{sentence}"))
    assert (socket, emitted) == ("turn", f"{SUPPORTED} [1]")
    assert draft(after).text == emitted


def test_a_mark_without_support_is_removed_from_its_sentence() -> None:
    _, after, _ = answer(chunks(f"{SUPPORTED} [1][2][7]"))
    assert draft(after).text == f"{SUPPORTED} [1]"
    assert draft(after).claims[0].citations == (1,)


def test_a_rejected_approach_is_withheld() -> None:
    approach = RejectedApproach("x", "Стучите по корпусу машины", "Портит его", "2024-01-01")
    _, after, emitted = answer(chunks(f"{SUPPORTED} [1]\nСтучите по корпусу машины. [1]"), rejected=[approach])
    assert emitted == f"{SUPPORTED} [1]"
    assert draft(after).withheld == (approach,)


@pytest.mark.parametrize("reply", ["NO_ANSWER", "**NO_ANSWER**", "NO_ANSWER.", "NO_ANSWER [1]"])
def test_a_model_may_refuse_to_answer(reply: str) -> None:
    socket, after, emitted = answer(chunks(reply))
    assert (socket, after.outcome, after.reason, after.draft) == ("refused", "refused", "llm_self_refusal", None)
    assert emitted == ""


@pytest.mark.parametrize(
    "reply",
    [["Извините, я не могу помочь."], ["}{ ]] [1] ñ [[["], [""], [RuntimeError("down")], ["Скидка 87 %. [1]"]],
    ids=["excuse", "garbage", "empty", "down", "invented"],
)
def test_without_supported_sentences_the_answer_is_quoted(reply: list[str | Exception]) -> None:
    socket, after, emitted = answer(reply)
    assert (socket, after.degraded, emitted) == ("turn", ("answer",), "")
    assert after.draft == quoted()


def test_what_is_not_what_was_asked_for_is_replaced_by_a_quotation_that_is() -> None:
    _, after, _ = answer(chunks("Насос работает 10 минут. [1]"))
    assert after.degraded == ("answer",)
    assert draft(after) == quoted()
    assert "Очистите сливной фильтр." in draft(after).text
    _, looping, _ = answer(chunks("Насос работает 10 минут. [2] " * 4))
    assert (looping.degraded, draft(looping)) == (("answer",), quoted())
    neither = answer(chunks(f"{SUPPORTED} [1]"), question="Сколько стоит мастер?")[1]
    assert (neither.degraded, draft(neither).text) == ((), f"{SUPPORTED} [1]")


@pytest.mark.parametrize(
    "rest",
    ["Вызовите слесаря. [1] Замените барабан. [1]", "Что делать при E20: [1]"],
    ids=["mostly invented", "nothing comes of it"],
)
def test_a_fragment_is_replaced_by_a_quotation(rest: str) -> None:
    _, after, _ = answer(chunks(f"Выключите машину и выньте вилку из розетки. [1] {rest}"))
    assert (after.degraded, draft(after)) == (("answer",), quoted())


def test_a_word_or_two_are_replaced_by_a_quotation() -> None:
    _, after, _ = answer(chunks("10 минут. [1]"), question="Сколько времени работает насос?")
    assert after.degraded == ("answer",)
    assert "Насос работает 10 минут." in draft(after).text


@pytest.mark.parametrize("mark", ["", " [2]", " [7]"])
def test_copied_steps_cite_their_source_whatever_their_marks(mark: str) -> None:
    reply = (
        f"Что делать при E20:{mark}\n1. Выключите машину и выньте вилку из розетки.{mark}\n"
        f"2. Очистите сливной фильтр.{mark}"
    )
    _, after, emitted = answer(chunks(reply))
    assert draft(after).text == emitted
    assert emitted == (
        "Что делать при E20: [1]\n1. Выключите машину и выньте вилку из розетки. [1]\n2. Очистите сливной фильтр. [1]"
    )


@pytest.mark.parametrize("again", [f"{SUPPORTED} [1]\n", "Насос, насос, ", "1. Проверьте насос. [1]\n", "на"])
def test_a_looping_reply_is_cancelled(again: str) -> None:
    model = Model([f"{SUPPORTED} [1]\n", *[again] * 60], ["never asked for"])
    emitted: list[str] = []
    step = GenerativeAnswerer(ChatModels(model), LocalJudge(), ExtractiveAnswerer())
    with collect_calls() as calls, token_sink(lambda piece, provisional: emitted.append(piece)):
        after = step.run(turn(QUESTION, PASSAGE, OTHER))["turn"]
    assert draft(after).text == "".join(emitted) == f"{SUPPORTED} [1]"
    assert after.degraded == ("answer_cut",)
    assert [call.outcome for call in calls.finished] == ["malformed"]


def test_a_reply_that_only_loops_is_replaced_by_a_quotation() -> None:
    _, after, emitted = answer(["Скидка 87 %. [1]\n"] * 60)
    assert (after.degraded, emitted) == (("answer",), "")
    assert "87" not in draft(after).text


def test_rows_of_a_price_table_are_no_loop() -> None:
    reply = "".join(f"- до {kilograms} кг: {300 + kilograms} ₽ [1]\n" for kilograms in range(5, 60, 5))
    assert not any(loops(reply[:end]) for end in range(len(reply)))


@pytest.mark.parametrize(
    "reply",
    [
        f"### Ответ: {SUPPORTED} [1]",
        f"**Ответ:** {SUPPORTED} [1]",
        f"**{SUPPORTED} [1]",
        f"> {SUPPORTED} [1]",
        f"Answer: {SUPPORTED} [1]\n**[1]**\n---\n```",
        f"{SUPPORTED} [1] {SUPPORTED} [1]\n{SUPPORTED} [1]",
    ],
)
def test_markdown_artefacts_and_repetitions_are_removed(reply: str) -> None:
    assert draft(answer(chunks(reply))[1]).text == f"{SUPPORTED} [1]"


@pytest.mark.parametrize(
    "copied",
    [
        "Приложите браслет к замку. [1]",
        "Приложите браслет к замку.",
        "Абонемент на 8 посещений действует 45 дней с первого визита. [1]",
        '<question id="0"> как закрыть шкафчик в раздевалке? </question id="0"> [1]',
    ],
)
def test_text_copied_from_an_example_turn_is_removed(copied: str) -> None:
    assert draft(answer(chunks(f"{SUPPORTED} [1]\n{copied}"))[1]).text == f"{SUPPORTED} [1]"


def test_an_interrupted_answer_keeps_its_supported_sentences() -> None:
    socket, after, emitted = answer([f"{SUPPORTED} [1]\n", "Насос работает 10 минут. [1]\nВык", ConnectionError()])
    assert (socket, after.degraded) == ("turn", ("answer_cut",))
    assert draft(after).text == emitted == f"{SUPPORTED} [1]\nНасос работает 10 минут. [1]"
    assert draft(after).truncated


def test_an_answer_interrupted_before_any_sentence_is_requested_again() -> None:
    _, after, emitted = answer(["Код E", ConnectionError()], [f"{SUPPORTED} [1]"])
    assert draft(after).text == emitted == f"{SUPPORTED} [1]"
    assert after.degraded == ()


def test_no_model_is_called_without_evidence() -> None:
    model = Model()
    step = GenerativeAnswerer(ChatModels(model), LocalJudge(), ExtractiveAnswerer())
    assert step.run(turn(QUESTION))["turn"].draft == Draft("", (), ())
    assert not model.prompts


def test_the_prompt_holds_the_day_the_company_and_the_question_behind_fences() -> None:
    model = Model(["NO_ANSWER"])
    with collect_calls() as calls, policy.overridden(Policy(name="Волна")):
        GenerativeAnswerer(ChatModels(model), LocalJudge(), ExtractiveAnswerer()).run(turn(QUESTION, PASSAGE))
        fence = calls.fence
    assert "Волна" in model.prompts[0]
    assert f'<question id="{fence}">\n{QUESTION}\n</question id="{fence}">' in model.prompts[0]
    assert "[1] source: Ошибки стиральной машины › E20" in model.prompts[0]


def test_a_tenant_may_choose_unverified_streaming() -> None:
    emitted: list[tuple[str, bool]] = []
    reply = f"{SUPPORTED} [1] Скидка 87 %. [1]"
    step = GenerativeAnswerer(ChatModels(Model([reply])), LocalJudge(), ExtractiveAnswerer())
    with (
        collect_calls(),
        policy.overridden(Policy(streaming="optimistic")),
        token_sink(lambda *chunks: emitted.append(chunks)),
    ):
        after = step.run(turn(QUESTION, PASSAGE))["turn"]
    assert "".join(text for text, _ in emitted) == reply
    assert all(provisional for _, provisional in emitted)
    assert draft(after).text == f"{SUPPORTED} [1]"


@given(st.lists(st.sampled_from([SUPPORTED, "Насос работает 10 минут.", "Насос работает 99 минут.", "NO_ANSWER"]),
                min_size=1, max_size=6), st.data())  # fmt: skip
def test_streamed_text_equals_the_answer_and_every_claim_is_supported(
    sentences: list[str], data: st.DataObject
) -> None:
    marks = [data.draw(st.sampled_from(["[1]", "[2]", "[1][2]", "[8]", ""])) for _ in sentences]
    _, after, emitted = answer(chunks(" ".join(f"{one} {mark}" for one, mark in zip(sentences, marks, strict=True))))
    if emitted:
        # A quotation takes the place of all that was heard.
        assert draft(after).text == (quoted().text if after.degraded == ("answer",) else emitted)
        for claim in draft(after).claims:
            passages = {citation.index: citation.passage for citation in draft(after).citations}
            assert claim.citations
            assert "99" not in claim.text
            assert all(claim.text in passages[index].text for index in claim.citations)


def test_it_survives_a_round_trip_through_yaml() -> None:
    models = ChatModels(OllamaChatGenerator(model="m"), strong=OllamaChatGenerator(model="s"), prices={"m": [1.0, 2.0]})
    whole = Pipeline()
    whole.add_component("answer", GenerativeAnswerer(models, LocalJudge(), ExtractiveAnswerer(limit=900)))
    again = Pipeline.loads(whole.dumps(), allowed_modules=["components", "haystack", "haystack_integrations"])
    assert again.to_dict() == whole.to_dict()
