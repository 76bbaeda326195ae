"""Intent: how-to questions are answerable, claims about one's own case go to a person, doubt means answerable."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import get_args

import numpy as np
import pytest
import yaml

from components.language.normalise import fold
from components.language.words import stems
from components.turn import Exchange, Intent
from components.understand import intent
from components.understand.gibberish import is_gibberish
from components.understand.intent import CALLBACK, FIXED, PLEA, IntentClassifier, Reading
from components.understand.meaning import MEANING_MODEL, WORDS_MODEL, LinearModel
from evaluation.datasets.rows import DATA
from evaluation.training.intent import digest, utterances
from settings import ROOT
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon

STORED = yaml.safe_load((ROOT / "pipelines" / "ask" / "ask.yaml").read_text(encoding="utf-8"))
PARAMETERS: Mapping[str, object] = STORED["components"]["intent"]["init_parameters"]

# What the product promises to understand, learnt or not.
PROMISED: dict[str, list[str]] = {
    "answerable": [
        "E20",
        "гарантия",
        "Как вернуть товар?",
        "Как отменить заказ?",
        "Как восстановить пароль?",
        "Сколько идёт возврат денег?",
        "Как обратиться в поддержку?",
        "Where are you?",
    ],
    "high_stakes": [
        "Отмените мой заказ и верните деньги немедленно!",
    ],
    "chitchat": [
        "привет!",
        "спасибо большое",
        "ghbdtn",
        "thank you so much",
    ],
    "nonsense": [
        "фывапролдж",
        "asdfghjkl",
        "ывапывап",
        "qqqqqq",
        "...",
        "!!!",
        "😀😀",
        "аааааа",
    ],
}
# None of these exact texts is in the training data of the model.
HELD_OUT: dict[str, list[str]] = {
    "answerable": [
        "E45 горит",
        "рассрочка на телефон",
        "Как мне отменить доставку?",
        "Как восстановить забытый пароль?",
        "Сколько ждать возврата денег на карту?",
        "Как обратиться в вашу поддержку?",
        "Kubernetes ingress",
        "MongoDB",
        "сроки",
        "Сколько стоит ремонт насоса?",
        "Можно ли отказаться от страховки?",
        "Где посмотреть мои обращения?",
        "Кто может подать иск от имени компании?",
        "При какой температуре плавится свинец?",
        "What does the blinking red light mean?",
        "Can I cancel the booking for free?",
        "How long until my refund shows up?",
        "Who was the king during the siege?",
        "rfr cltkfnm djpdhfn",
        "kak vernut tovar",
        "Ошибка Е20 на дисплее, как исправить?",
        "Деньги за заказ списались дважды, почему и что делать?",
        "Как подать жалобу на курьера?",
        "PostgreSQL",
        "our garden chairs were stolen from the porch, who pays",
        "заберут ли коробку, если её украли у двери",
        "a gift box for my dad, do you wrap it",
        "а второй раз менять адрес бесплатно?",
        "jib,rf t20",
        "из стиралки несёт тухлятиной",
        "сколько света мотает машинка на 8 кг за год",
        "Can my neighbour collect the order for me?",
        "Может ли сосед забрать заказ за меня?",
    ],
    "high_stakes": [
        "Немедленно верните мне деньги за билет",
        "Отменяйте мою подписку и возвращайте деньги, я так больше не могу",
        "Хочу пожаловаться на грубого мастера",
        "Мой профиль взломали и сменили почту",
        "Я буду подавать на вас в суд за обман",
        "Сильно болит живот, какую таблетку мне принять?",
        "Cancel my subscription now and refund everything",
        "Your technician was awful and rude, I am furious",
        "I wish to register a formal complaint, who deals with these",
        "Хочу составить официальную жалобу, кто у вас начальник",
        "Somebody hacked my account and changed my email",
        "My lawyer will be in touch, I am suing you",
        "my chest hurts, which pill should I take?",
        "jnvtybnt vjq pfrfp b dthybnt ltymub ytvtlktyyj",
        "ну и сервис у вас конечно",
    ],
    "wants_human": [
        "соедините меня с вашим оператором",
        "дайте мне поговорить с живым человеком",
        "позовите кого-нибудь из сотрудников",
        "please let me speak to a real human being",
        "can you transfer me to one of your agents",
        "would somebody ring me back this afternoon please",
        "пусть мастер мне наберёт вечером",
    ],
    "chitchat": [
        "привет, бот!",
        "спасибо вам большое за помощь",
        "ты робот или человек?",
        "thank you very much, bye",
        "hello, how are you doing?",
        "what is your name, bot?",
        "ur awesome haha",
        "you useless piece of rubbish",
        "тупая железяка, иди отсюда",
    ],
    "irrelevant": [
        "расскажи мне смешной анекдот про кота",
        "сочини стихи про зиму",
        "какая завтра будет погода в Казани?",
        "tell me another funny joke",
        "write me a poem about the sea",
        "what is the weather going to be tomorrow?",
        "what is the best way to roast a goose",
        "поможешь с домашкой по математике",
    ],
    "out_of_scope": [
        "закажи мне такси до дома",
        "поставь будильник на шесть утра",
        "включи какую-нибудь музыку",
        "set an alarm for six in the morning",
        "play some jazz music please",
        "call my mum for me",
    ],
}
EXPECTED = {text: intent for told in (PROMISED, HELD_OUT) for intent, texts in told.items() for text in texts}


def test_held_out_messages_are_not_in_the_training_set() -> None:
    learnt = {fold(u.text).rstrip("!?.") for u in utterances()}
    assert not {q for questions in HELD_OUT.values() for q in questions if fold(q).rstrip("!?.") in learnt - {""}}


@pytest.fixture(autouse=True)
def terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}))
    monkeypatch.setattr(intent, "vector_of", lambda _text: None)


@pytest.fixture(scope="module")
def classifier() -> IntentClassifier:
    component = IntentClassifier(**PARAMETERS)  # type: ignore[arg-type]
    component.warm_up()
    return component


def read_as(classifier: IntentClassifier, question: str) -> Reading:
    fixed: Reading | None = classifier.run(question=question).get("fixed")
    return fixed or Reading("answerable", 1.0)


def test_each_message_has_its_intent(classifier: IntentClassifier) -> None:
    assert {question: read_as(classifier, question).intent for question in EXPECTED} == EXPECTED


@pytest.mark.parametrize(
    ("question", "risk"),
    [
        ("Отмените мой заказ и верните деньги немедленно!", "cancellation"),
        ("С меня списали деньги без разрешения, верните немедленно", "billing_dispute"),
        ("Ваш мастер нахамил мне, хочу пожаловаться", "complaint"),
        ("Мой аккаунт взломали", "lost_access"),
        ("У меня болит грудь, что принять?", "medical"),
        ("от утюга пошёл дым, что мне делать", "danger"),
        ("the toaster gave my husband a shock", "danger"),
        ("Я подам на вас в суд", "legal"),
        ("Your courier was rude to me, I want to complain", "complaint"),
        ("I am going to complain about that salesman of yours", "complaint"),
        ("I'd like to make a complaint about a shop assistant", "complaint"),
    ],
)
def test_the_risk_class(classifier: IntentClassifier, question: str, risk: str) -> None:
    turn = read_as(classifier, question)
    assert (turn.intent, turn.risk, FIXED[turn.intent]) == ("high_stakes", risk, ("high_stakes", "high_risk"))


@pytest.mark.parametrize(
    "question",
    [
        "who is better for a couple, the compact or the standard, in your opinion?",
        "Кто лучше для двоих, компакт или стандарт, по-твоему?",
    ],
)
def test_a_message_in_words_of_the_knowledge_base_is_on_topic(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    assert read_as(classifier, question).intent == "irrelevant"
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, dict.fromkeys(stems(question), 1), {}))
    assert classifier.run(question=question) == {"question": question}


@pytest.mark.parametrize("question", ["could you ring me back on my mobile", "перезвоните мне вечером пожалуйста"])
def test_a_request_for_a_call_is_one(classifier: IntentClassifier, question: str) -> None:
    assert (read_as(classifier, question).intent, read_as(classifier, question).kind) == ("wants_human", CALLBACK)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("спасибо вам огромное", "thanks"),
        ("thanks a lot for that", "thanks"),
        ("ну пока", "farewell"),
        ("got it, goodbye", "farewell"),
        ("ок", "acknowledgement"),
        ("alright then", "acknowledgement"),
        ("вы вообще живой человек?", "about_assistant"),
        ("am i chatting with a bot", "about_assistant"),
        ("Помогите!", "plea"),
        ("что делать?", "plea"),
        ("не работает", "plea"),
        ("help me please", "plea"),
        ("does not work", "plea"),
        ("isn't working", "plea"),
        ("not a thing works here, help", "plea"),
        ("ответьте срочно пожалуйста", "plea"),
        ("Здравствуйте, вы робот?", "about_assistant"),
        ("hello are you human", "about_assistant"),
        ("good afternoon, hope all is fine", "greeting"),
        ("приветики", "greeting"),
        ("oh never mind, thank you anyway", "thanks"),
        ("oh right, makes sense, thank you!", "thanks"),
        ("ага понятно, учту, спасибо большое", "thanks"),
        ("haha only joking!", "chitchat"),
        ("да пошутил я", "chitchat"),
        ("ничего, и на этом спасибо", "thanks"),
        ("alright will try that, bye bye", "farewell"),
        ("нет, больше вопросов нет", "farewell"),
        ("ah gotcha", "acknowledgement"),
        ("am I writing to a machine right now", "about_assistant"),
    ],
)
def test_small_talk_and_pleas_are_told_apart(classifier: IntentClassifier, message: str, kind: str) -> None:
    assert read_as(classifier, message).kind == kind


@pytest.mark.parametrize(
    "message",
    [
        "Здравствуйте! Подскажите, пожалуйста, машина не сливает воду",
        "Добрый день! Подскажите, пожалуйста, подключение входит в цену?",
        "Здравствуйте! Подскажите, пожалуйста, где взять накладную",
    ],
)
def test_a_polite_question_is_no_plea(classifier: IntentClassifier, message: str) -> None:
    assert read_as(classifier, message).kind == ""


@pytest.mark.parametrize(
    "message",
    [
        "did everything on the list, no difference",
        "it's been eight days already",
        "driver has it already",
        "сделала всё по списку, без изменений",
        "прошло уже восемь дней",
    ],
)
def test_a_report_in_a_conversation_is_no_small_talk(classifier: IntentClassifier, message: str) -> None:
    assert "question" in classifier.run(question=message)


@pytest.mark.parametrize(
    "message",
    [
        "ошибка E20, как исправить?",
        "не работает сайт",
        "помогите выбрать машину",
        "kid pressed something and now there is a key symbol and buttons dont work",
        "can somebody help me carry the washer upstairs",
    ],
)
def test_a_message_that_names_its_matter_is_no_plea(classifier: IntentClassifier, message: str) -> None:
    assert "question" in classifier.run(question=message)


def test_a_plea_after_a_question_is_about_that_question(classifier: IntentClassifier) -> None:
    history = [Exchange("Машина показывает E20", "answered")]
    assert "question" in classifier.run(question="что делать?", history=history)
    assert classifier.run(question="помогите", history=history)["fixed"].kind == "plea"


def test_a_doubtful_question_is_let_through_with_its_doubt(classifier: IntentClassifier) -> None:
    outputs = classifier.run(question="скинь рецепт сырников плиз")
    assert outputs["question"] == "скинь рецепт сырников плиз"
    assert outputs["doubt"].intent == "irrelevant"
    assert "doubt" not in classifier.run(question="Как вернуть товар?")


class Meaning:
    """A model by meaning that is certain of a label."""

    def __init__(self, label: str) -> None:
        self.label = label

    def probabilities(self, _vector: object) -> dict[str, float]:
        return {label: float(label == self.label) for label in LinearModel(WORDS_MODEL).labels}


def meant(monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    monkeypatch.setattr(intent, "vector_of", lambda _text: [0.0])
    monkeypatch.setattr(intent, "model", lambda path: Meaning(label) if path == MEANING_MODEL else LinearModel(path))


def test_a_doubtful_kind_of_small_talk_is_not_chosen(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant(monkeypatch, "greeting")
    assert classifier.run(question="great, third day waiting, bravo")["doubt"].kind == "greeting"
    mixed = {"greeting": 0.5, "complaint": 0.2, "thanks": 0.3}
    monkeypatch.setattr(Meaning, "probabilities", lambda _self, _vector: Counter(mixed))
    doubt = classifier.run(question="great, third day waiting, bravo")["doubt"]
    assert (doubt.intent, doubt.kind) == ("chitchat", "chitchat")


def test_a_problem_that_sounds_like_small_talk_is_none(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant(monkeypatch, "plea")
    assert classifier.run(question="no sound at all")["fixed"].intent == "chitchat"
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, {"sound": 2}, {}))
    read = classifier.run(question="no sound at all")
    assert "fixed" not in read
    assert read["doubt"].kind == PLEA
    meant(monkeypatch, "acknowledgement")
    assert classifier.run(question="no sound at all")["fixed"].intent == "chitchat"


@pytest.mark.parametrize(
    "question", ["thanks, where is the store?", "понял, спасибо. где магазин?", "благодарю, и ещё вопрос: где вы"]
)
def test_a_question_after_thanks_is_no_small_talk(classifier: IntentClassifier, question: str) -> None:
    assert read_as(classifier, question).intent == "answerable"


@pytest.mark.parametrize(
    ("label", "kind"), [("plea", "plea"), ("complaint", "complaint"), ("irrelevant", "irrelevant")]
)
def test_a_doubt_is_by_words_and_meaning(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch, label: str, kind: str
) -> None:
    meant(monkeypatch, label)
    assert classifier.run(question="скинь рецепт сырников плиз")["doubt"].kind == kind
    assert "doubt" not in classifier.run(question="ошибка E20, как исправить?")
    meant(monkeypatch, "answerable")
    assert "doubt" not in classifier.run(question="скинь рецепт сырников плиз")


def test_a_plea_in_a_conversation_is_about_its_topic(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant(monkeypatch, "plea")
    question = "пробовала уже, толку никакого"
    assert classifier.run(question=question)["doubt"].kind == PLEA
    assert "doubt" not in classifier.run(question=question, history=[Exchange("Люк не открывается", "refused")])


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("банк не одобрил рассрочку что теперь делать", PLEA),
        ("display is in german or something how do i get english", "irrelevant"),
    ],
)
def test_the_meaning_contests_a_plea_and_an_off_topic_message(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch, message: str, kind: str
) -> None:
    meant(monkeypatch, kind)
    assert read_as(classifier, message).kind == kind
    meant(monkeypatch, "answerable")
    assert classifier.run(question=message) == {"question": message}


def test_a_question_follows_a_greeting_by_its_meaning(
    classifier: IntentClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "hello there, any kettles?"
    meant(monkeypatch, "greeting")
    assert read_as(classifier, message).kind == "greeting"
    meant(monkeypatch, "answerable")
    assert "question" in classifier.run(question=message)


def test_the_stored_model_by_meaning_matches_the_utterances() -> None:
    stored = LinearModel(MEANING_MODEL)
    assert stored.digest == digest(), "run python -m evaluation.training.intent"
    assert stored.labels == LinearModel(WORDS_MODEL).labels
    assert sum(stored.probabilities([0.05] * 384).values()) == pytest.approx(1)


def test_every_other_intent_has_its_outcome() -> None:
    assert set(FIXED) == set(get_args(Intent)) - {"answerable"}


@pytest.mark.parametrize(
    "file",
    [
        "vkcloud/dev/faq_ru",
        "xquad/dev/questions_ru",
        "xquad/dev/questions_en",
        "wixqa/dev/questions",
        "techqa/dev/questions",
    ],
)
def test_real_questions_are_answerable(classifier: IntentClassifier, file: str) -> None:
    path = DATA / f"{file}.jsonl"
    if not path.exists():
        pytest.skip(f"the public set {file} is not on this machine")
    questions = [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]
    stopped = [question for question in questions if read_as(classifier, question).intent != "answerable"]
    assert len(stopped) <= 0.005 * len(questions), stopped


@pytest.mark.parametrize(
    "text",
    [
        "Отмените заказ {}",
        "Отмените мой заказ {} и верните деньги",
        "Прошу отменить договор {}",
        "Please cancel my order {} and refund",
    ],
)
def test_a_cancellation_full_of_numbers_is_one(classifier: IntentClassifier, text: str) -> None:
    for form, numbers in product(("{}", "№ {}", "AB-{}", "[card] {}", "****{}"), (1, 5, 20, 200)):
        codes = ", ".join(form.format(7_919 * number % 90_000 + 10_000) for number in range(1, numbers + 1))
        assert read_as(classifier, text.format(codes)).risk == "cancellation"


def test_a_threshold_above_one_switches_an_intent_off() -> None:
    assert read_as(IntentClassifier(threshold=1.1), "расскажи анекдот").intent == "answerable"
    assert read_as(IntentClassifier(thresholds={"nonsense": 1.1}), "фывапролдж").intent == "answerable"
    with pytest.raises(ValueError, match="no such intents"):
        IntentClassifier(thresholds={"chit-chat": 0.5})


def test_a_word_is_not_gibberish() -> None:
    for text in ("СНИЛС", "kWh", "API", "куплю гараж", "pgaudit", "12", "ghbdtn", "spasibo"):
        assert not is_gibberish(text)


def test_runs_of_keys_are_gibberish() -> None:
    for text in ("qwe zxc", "йцу ячс", "asd qwe"):
        assert is_gibberish(text)
    for text in ("СМИ", "про СМИ", "API SSL"):
        assert not is_gibberish(text)


def test_the_stored_model_matches_the_utterances() -> None:
    assert LinearModel(WORDS_MODEL).digest == digest(), "run python -m evaluation.training.intent"


def test_training_again_gives_the_same_answers() -> None:
    from evaluation.training.intent import train

    few = [u for u in utterances() if u.label in ("answerable", "wants_human")][::40]
    first, second = train(few), train(few)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert set(first["labels"].tolist()) == {"answerable", "wants_human"}
