"""The kind of a question, by its words."""

import pytest
from components.language.question_kind import QuestionKind, kind_of


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Как увеличить диск виртуальной машины?", "howto"),
        ("Как мне самостоятельно сменить тариф?", "howto"),
        ("How do I reset my password?", "howto"),
        ("Можно ли восстановить удалённый диск?", "yesno"),
        ("Шифруется ли соединение с базой?", "yesno"),
        ("Параметр autovacuum включён для всех таблиц?", "yesno"),
        ("Can I change the region later?", "yesno"),
        ("Сколько времени хранятся резервные копии?", "quantity"),
        ("Какой максимальный размер сообщения?", "quantity"),
        ("How many users may join?", "quantity"),
        ("Где посмотреть реквизиты?", "where"),
        ("Куда обратиться за помощью?", "where"),
        ("Where can I find my invoices?", "where"),
        ("Как обратиться в поддержку?", "where"),
        ("Как с вами связаться?", "where"),
        ("How do I contact support?", "where"),
        ("Что такое плавающий IP?", "what_is"),
        ("В чём разница между диском и образом?", "what_is"),
        ("Почему не приходит письмо?", "why"),
        ("Что делать, если забыт пароль?", "why"),
        ("Не удаётся подключиться к ВМ", "why"),
        ("Why is my disk read-only?", "why"),
        ("Какую версию PostgreSQL использует сервис?", "which"),
        ("Which plan suits a team?", "which"),
        ("Какова цель бонусной программы магазина?", "which"),
        ("Какие операционные системы поддерживаются?", "list"),
        ("Что входит в SLA?", "list"),
        ("Как рассчитывается стоимость хранения?", "other"),
        ("Когда обновят сервис?", "other"),
        ("Фрагменты чьей стены видны в городе?", "other"),
        ("пони", "other"),
    ],
)
def test_the_kind_is_read_from_the_words(question: str, kind: QuestionKind) -> None:
    assert kind_of(question) == kind
