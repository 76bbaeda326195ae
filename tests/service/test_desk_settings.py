"""Settings in the desk: a saved form takes effect, and a refused one keeps the input with the reason at its field."""

from collections.abc import Callable, Iterator

import httpx
import pytest
from lxml import html
from sqlalchemy import update

from components.language.texts import LOCALES, text
from settings import Settings
from tenants.access import issued_tokens
from tenants.accounts import policy, settings_history
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry
from tenants.chats import outbox, sites, webhooks
from tenants.chats.tables import OutboxRow
from tenants.core.context import Tenant, acting_as
from tenants.desk import operators
from tenants.knowledge import tools
from tenants.storage import database
from tests import desk
from tests.desk import Browser
from tests.service.serving import Server
from ui.desk.settings.offers import RISKS
from ui.desk.settings.policy_fields import GROUPS

ADMIN = Tenant("settled", "admin")
ROOT = "/desk/settings"


@pytest.fixture(scope="module")
def settled(installation: Settings) -> None:
    Registry(installation).add(ADMIN.tenant_id, name="Ромашка", locale="ru")


@pytest.fixture
def admin(server: Server, settled: None) -> Iterator[Browser]:
    operator = desk.staff(ADMIN.tenant_id, {"Анна": "admin"})["Анна"]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield Browser(client, desk.secret_of(operator))


@pytest.fixture
def now() -> Iterator[Callable[[], Policy]]:
    with acting_as(ADMIN):
        yield latest


def parsed(response: httpx.Response) -> html.HtmlElement:
    """Parse a page."""
    return html.document_fromstring(response.content)


def latest() -> Policy:
    """Return the current policy, including the service's own changes."""
    sites.expire()
    return policy.latest()


def values(page: html.HtmlElement, form: str) -> dict[str, str]:
    """Return the values of a form as a browser would send them."""
    return dict(page.get_element_by_id(form).form_values())


def test_every_rule_has_its_field_and_its_words_in_both_languages() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    of_other_pages = {"approved_offers", "synonyms", "hours", "evaluation_hour"}
    assert sorted(grouped) == sorted(set(Policy.model_fields) - of_other_pages)
    for locale in LOCALES:
        for name in grouped:
            for part in ("label", "hint"):
                assert text(f"desk.settings.policy.{name}.{part}", locale)
        for risk in RISKS:
            assert text(f"desk.settings.offer.{risk}.label", locale)


def test_models_are_tested_with_the_setting_and_the_command(admin: Browser) -> None:
    tested = parsed(admin.post(f"{ROOT}/models/test", {"profile": "openai"}))
    (result,) = tested.xpath("//*[@id='profile-openai']//div[@role='status']")
    words = result.text_content()
    assert "задайте переменную окружения OPENAI_API_KEY (ask/profiles/openai.yaml)" in words
    assert "export OPENAI_API_KEY=…" in words


def test_what_is_saved_is_in_force_and_shown(admin: Browser, now: Callable[[], Policy]) -> None:
    form = values(admin.page(ROOT), "answers")
    typed = {"answer_threshold": "0,45", "top_k": "7", "allowed_domains": "shop.example\r\n\r\nhelp.example"}
    saved = admin.post(f"{ROOT}/policy/answers", {**form, **typed, "low_confidence_to_human": "true"})
    assert (saved.status_code, saved.headers["location"]) == (303, f"{ROOT}?saved=answers#answers")
    assert (now().answer_threshold, now().top_k, now().low_confidence_to_human) == (0.45, 7, True)
    assert now().allowed_domains == ("shop.example", "help.example")
    page = admin.page(f"{ROOT}?saved=answers")
    shown = values(page, "answers")
    assert (shown["answer_threshold"], shown["top_k"]) == ("0.45", "7")
    assert shown["allowed_domains"].split() == ["shop.example", "help.example"]
    assert page.get_element_by_id("answers").find_class("done")
    # The values that were read can be sent back, and change nothing.
    for group in GROUPS:
        before = now()
        assert admin.post(f"{ROOT}/policy/{group}", values(page, group)).status_code in (303, 409)
        assert now() == before


def test_what_does_not_fit_stays_typed_with_the_reason_beside_it(admin: Browser, now: Callable[[], Policy]) -> None:
    before = now()
    form = values(admin.page(ROOT), "answers")
    typed = {"answer_threshold": "много", "top_k": "99", "allowed_domains": "shop.example\nне домен"}
    refused = admin.post(f"{ROOT}/policy/answers", {**form, **typed})
    assert refused.status_code == 422
    page = parsed(refused)
    shown = values(page, "answers")
    assert shown["answer_threshold"] == "много"
    assert shown["top_k"] == "99"
    assert shown["allowed_domains"].strip().splitlines() == ["shop.example", "не домен"]
    assert page.get_element_by_id("top_k-fault").text == "Слишком много: не больше 20."
    assert page.get_element_by_id("answer_threshold-fault").text == "Здесь нужно число."
    assert page.get_element_by_id("allowed_domains-fault").text.startswith("Строка 2.")
    field = page.get_element_by_id("answer_threshold")
    assert field.get("aria-invalid") == "true"
    assert "answer_threshold-fault" in field.get("aria-describedby")
    assert field.get("autofocus") is not None
    assert now() == before


def test_a_second_admin_keeps_what_was_typed_and_sees_what_is_in_force(
    admin: Browser, now: Callable[[], Policy]
) -> None:
    form = values(admin.page(ROOT), "handoff")
    policy.change(queue_minutes=15)
    refused = admin.post(f"{ROOT}/policy/handoff", {**form, "queue_minutes": "30"})
    assert refused.status_code == 409
    page = parsed(refused)
    again = values(page, "handoff")
    assert again["queue_minutes"] == "30"
    assert "15" in page.get_element_by_id("queue_minutes-now").text
    assert now().queue_minutes == 15
    assert admin.post(f"{ROOT}/policy/handoff", again).status_code == 303
    assert now().queue_minutes == 30


def test_changes_are_told_in_words(admin: Browser, now: Callable[[], Policy]) -> None:
    policy.change(streaming="optimistic", answer_threshold=0.25, approved_offers={"complaint/курьер": "Перезвоним."})
    policy.change(failures_to_person=9)
    desk.staff(ADMIN.tenant_id, {"Глеб": "editor"})
    webhook = webhooks.add("https://crm.invalid/told", ("chat.rated",))
    webhooks.remove(webhook.webhook_id)
    listed = admin.page(f"{ROOT}/changes").text_content()
    for words in (
        "Вопросов без ответа подряд",
        "сразу, пока пишется",
        "0,25",
        "Жалуется (курьер): Перезвоним.",
        "редактор",
        "клиент поставил оценку",
    ):
        assert words in listed
    for code in ("optimistic", "0.25", "complaint", "chat.rated", webhook.webhook_id):
        assert code not in listed


def test_offers_and_synonyms_are_saved_as_they_are_typed(admin: Browser, now: Callable[[], Policy]) -> None:
    policy.change(approved_offers={"custom": "Своё."}, synonyms=())
    form = values(admin.page(f"{ROOT}/offers"), "form")
    offer = "Приостановим на месяц.\r\nБесплатно."
    assert admin.post(f"{ROOT}/offers", {**form, "cancellation": offer}).status_code == 303
    assert now().approved_offers == {"custom": "Своё.", "cancellation": "Приостановим на месяц.\nБесплатно."}
    form = values(admin.page(f"{ROOT}/synonyms"), "form")
    assert (
        admin.post(f"{ROOT}/synonyms", {**form, "synonyms": "стиралка,  машинка\n\nзаказ, посылка"}).status_code == 303
    )
    assert now().synonyms == (("стиралка", "машинка"), ("заказ", "посылка"))
    form = values(admin.page(f"{ROOT}/synonyms"), "form")
    refused = admin.post(f"{ROOT}/synonyms", {**form, "synonyms": "стиралка, машинка\nодно"})
    assert refused.status_code == 422
    page = parsed(refused)
    assert page.get_element_by_id("synonyms-fault").text.startswith("Строка 2.")
    assert values(page, "form")["synonyms"].endswith("одно")


def test_offers_for_certain_words_are_added_changed_and_removed(admin: Browser, now: Callable[[], Policy]) -> None:
    kept = {"custom": "Своё.", "cancellation/подписка тариф": "Пауза на месяц."}
    policy.change(approved_offers=kept)
    form = values(admin.page(f"{ROOT}/offers"), "form")
    assert (form["bound_0_words"], form["bound_0_offer"].strip()) == ("подписка тариф", "Пауза на месяц.")
    added = {"bound_1_risk": "complaint", "bound_1_words": "курьер, доставка", "bound_1_offer": "Вернём 300 рублей."}
    assert admin.post(f"{ROOT}/offers", {**form, **added}).status_code == 303
    assert now().approved_offers == {**kept, "complaint/курьер доставка": "Вернём 300 рублей."}
    form = values(admin.page(f"{ROOT}/offers"), "form")
    wrong = {"bound_2_risk": "complaint", "bound_2_words": "", "bound_2_offer": "Перезвоним."}
    refused = admin.post(f"{ROOT}/offers", {**form, **wrong})
    assert refused.status_code == 422
    assert parsed(refused).get_element_by_id("bound_2_words-fault").text == "Заполните это поле."
    assert values(parsed(refused), "form")["bound_2_offer"].strip() == "Перезвоним."
    twice = {**wrong, "bound_2_words": "курьер доставка"}
    page = parsed(admin.post(f"{ROOT}/offers", {**form, **twice}))
    assert "уже есть" in str(page.get_element_by_id("bound_2_words-fault").text)
    assert admin.post(f"{ROOT}/offers", {**form, "bound_0_words": "", "bound_0_offer": ""}).status_code == 303
    assert now().approved_offers == {"custom": "Своё.", "complaint/курьер доставка": "Вернём 300 рублей."}


def test_hours_are_read_as_people_write_them(admin: Browser, now: Callable[[], Policy]) -> None:
    form = values(admin.page(f"{ROOT}/hours"), "form")
    typed = {
        "zone": "Europe/Moscow",
        "week_mon": "9–13, 14:00 - 18:00",
        "week_sun": "",
        "holidays": "31.12.2026\n2027-01-01",
        "away_ru": "Отдыхаем.",
    }
    assert admin.post(f"{ROOT}/hours", {**form, **typed}).status_code == 303
    hours = now().hours
    assert hours is not None
    assert hours.week == {"mon": ("09:00-13:00", "14:00-18:00")}
    assert [str(day) for day in hours.holidays] == ["2026-12-31", "2027-01-01"]
    assert hours.away == {"ru": "Отдыхаем."}
    page = admin.page(f"{ROOT}/hours")
    form = values(page, "form")
    assert admin.post(f"{ROOT}/hours", form).status_code == 303
    assert now().hours == hours
    wrong = {"zone": "Europe/Atlantis", "week_tue": "18:00-09:00", "week_wed": "утром", "holidays": "31.13"}
    refused = admin.post(f"{ROOT}/hours", {**values(admin.page(f"{ROOT}/hours"), "form"), **wrong})
    assert refused.status_code == 422
    page = parsed(refused)
    for name, typed_value in wrong.items():
        assert page.get_element_by_id(f"{name}-fault").text
        assert values(page, "form")[name].strip() == typed_value
    assert "Это не дата" in page.get_element_by_id("holidays-fault").text
    assert now().hours == hours
    assert admin.post(f"{ROOT}/hours/remove", {}).status_code == 303
    assert now().hours is None


def test_a_site_is_added_changed_and_given_hours_of_its_own(admin: Browser, now: Callable[[], Policy]) -> None:
    nameless = parsed(admin.post(f"{ROOT}/sites", {"name": " ", "origins": "https://shop.example"}))
    assert nameless.get_element_by_id("name-fault").text == "Заполните это поле."
    added = admin.post(f"{ROOT}/sites", {"name": "Магазин", "origins": "https://Shop.example/"})
    path = added.headers["location"].partition("#")[0]
    key = path.rpartition("/")[2]
    assert sites.get(key).origins == ("https://shop.example",)
    page = admin.page(path)
    assert f'data-site="{key}"' in page.get_element_by_id("snippet-line").text
    typed = {
        "welcome": "Здравствуйте!",
        "suggested": "Где заказ?\nКак вернуть?",
        "theme_accent": "#0a7d5a",
        "consent_text": "Согласен",
        "consent_url": "https://shop.example/privacy",
    }
    form = {name: value for name, value in values(page, "form").items() if name != "files"}
    assert admin.post(path, {**form, **typed}).status_code == 303
    sites.expire()
    config = sites.get(key).config
    assert (config.welcome, config.suggested, config.files) == ("Здравствуйте!", ("Где заказ?", "Как вернуть?"), False)
    assert config.consent is not None
    assert (config.consent.url, config.theme) == ("https://shop.example/privacy", {"accent": "#0a7d5a"})
    form = values(admin.page(path), "form")
    refused = admin.post(
        path, {**form, "consent_url": "ftp://x", "origins": "https://shop.example/path", "name": "Лавка"}
    )
    assert refused.status_code == 422
    page = parsed(refused)
    assert values(page, "form")["name"] == "Лавка"
    assert page.get_element_by_id("consent_url-fault").text
    origins = "\n".join(f"https://shop-{number}.example" for number in range(101))
    refused = admin.post(path, {**form, "origins": origins})
    assert refused.status_code == 422
    assert "100" in parsed(refused).get_element_by_id("origins-fault").text
    hours = values(admin.page(f"{ROOT}/hours?site={key}"), "form")
    assert admin.post(f"{ROOT}/hours", {**hours, "zone": "UTC", "week_mon": "09:00-18:00"}).status_code == 303
    assert now().hours is None
    assert sites.get(key).config.hours is not None
    stale = admin.post(path, {**form, "name": "Лавка"})
    assert stale.status_code == 409
    assert values(parsed(stale), "form")["name"] == "Лавка"
    assert admin.post(f"{path}/remove", {}).status_code == 303
    assert admin.client.get(path, headers=admin.cookie).status_code == 404


def test_a_signing_secret_is_shown_once(admin: Browser, now: Callable[[], Policy]) -> None:
    site = sites.add("Магазин", [])
    path = f"{ROOT}/sites/{site.key}"
    page = parsed(admin.post(f"{path}/identity", {}))
    secret = page.get_element_by_id("identity-secret").text
    sites.expire()
    assert sites.get(site.key).identity_secret == secret
    assert secret not in html.tostring(admin.page(path), encoding="unicode")
    assert secret not in html.tostring(admin.page(f"{ROOT}/changes"), encoding="unicode")
    sites.remove(site.key)


TOOL = {
    "name": "orders",
    "title": "Заказы",
    "description": "Где мой заказ с номером",
    "url": "http://127.0.0.1:9/orders",
    "parameters": '{"properties": {"number": {"type": "string", "pattern": "[0-9]{7}"}}, "required": ["number"]}',
    "answer": "",
    "timeout_seconds": "2,5",
}


def test_a_tool_is_edited_tried_and_disabled_without_showing_secrets(admin: Browser, now: Callable[[], Policy]) -> None:
    path = f"{ROOT}/tools/orders"
    broken = admin.post(f"{ROOT}/tools", {**TOOL, "parameters": "{"})
    assert broken.status_code == 422
    page = parsed(broken)
    assert page.get_element_by_id("parameters-fault").text.startswith("Это не JSON")
    assert values(page, "form")["title"] == "Заказы"
    wrong = {"name": "Мои заказы", "title": "", "timeout_seconds": "99", "headers": "Host: hush"}
    refused = admin.post(f"{ROOT}/tools", {**TOOL, **wrong})
    reasons = {name: parsed(refused).get_element_by_id(f"{name}-fault").text for name in wrong}
    assert reasons == {
        "name": "Запишите так, как в примере.",
        "title": "Заполните это поле.",
        "timeout_seconds": "Слишком много: не больше 20.",
        "headers": "Пишите по одному в строке: имя: значение.",
    }
    assert "hush" not in refused.text
    added = admin.post(f"{ROOT}/tools", {**TOOL, "headers": "Authorization: Bearer hush"})
    assert added.headers["location"].startswith(path)
    stored = tools.get("orders")
    assert (stored.secrets, stored.timeout_seconds) == ({"authorization": "Bearer hush"}, 2.5)
    page = admin.page(path)
    assert "hush" not in html.tostring(page, encoding="unicode")
    assert admin.post(path, {**values(page, "form"), "title": "Мои заказы"}).status_code == 303
    assert (tools.get("orders").title, tools.get("orders").secrets) == ("Мои заказы", stored.secrets)
    tried = parsed(admin.post(f"{path}/test", {"question": "Где мой заказ?"})).text_content()
    assert "В вопросе нет того, что инструменту нужно" in tried
    tried = parsed(admin.post(f"{path}/test", {"question": "Где мой заказ 1234567?"})).text_content()
    assert "1234567" in tried
    assert "во внутренней сети" in tried
    admin.post(f"{path}/disable", {})
    assert not tools.get("orders").enabled
    form = values(admin.page(path), "form")
    assert admin.post(path, {**form, "url": "https://elsewhere.example/orders"}).status_code == 303
    assert not tools.get("orders").secrets
    assert not tools.get("orders").enabled
    noted = settings_history.latest("tool")
    assert [one.act for one in noted] == ["rotated", "changed", "changed", "changed", "added"]
    assert "hush" not in str([(one.before, one.after) for one in noted])
    admin.post(f"{path}/remove", {})
    assert tools.all() == ()


def test_a_webhook_is_added_tested_and_sent_to_again(admin: Browser, now: Callable[[], Policy]) -> None:
    refused = parsed(admin.post(f"{ROOT}/webhooks", {"url": "ftp://crm.example"}))
    assert values(refused, "form")["url"] == "ftp://crm.example"
    assert refused.get_element_by_id("url-fault").text
    url = "https://crm.invalid/hook"
    page = parsed(admin.post(f"{ROOT}/webhooks", {"url": url, "chat.rated": "true"}))
    (added,) = webhooks.own()
    assert (added.url, added.events) == (url, ("chat.rated",))
    assert page.get_element_by_id("webhook-secret").text == added.secrets[0]
    assert added.secrets[0] not in html.tostring(admin.page(f"{ROOT}/webhooks"), encoding="unicode")
    named = {"webhook_id": added.webhook_id}
    assert admin.post(f"{ROOT}/webhooks/test", named).status_code == 303
    (delivery,) = outbox.latest()
    assert (delivery.event, delivery.webhook_id) == ("webhook.test", added.webhook_id)
    with database.across_tenants(write=True) as session:
        given_up = {"state": "dead", "fault": "status 500"}
        session.execute(update(OutboxRow).where(OutboxRow.delivery_id == delivery.delivery_id).values(given_up))
    dead = admin.page(f"{ROOT}/webhooks?state=dead").text_content()
    assert "проба" in dead
    assert "Получатель ответил кодом 500." in dead
    assert admin.post(f"{ROOT}/webhooks/redeliver", {"delivery_id": delivery.delivery_id}).status_code == 303
    assert outbox.latest()[0].state == "pending"
    renewed = parsed(admin.post(f"{ROOT}/webhooks/rotate", named))
    assert renewed.get_element_by_id("webhook-secret").text == webhooks.own()[0].secrets[0] != added.secrets[0]
    assert admin.post(f"{ROOT}/webhooks/remove", named).status_code == 303
    assert webhooks.own() == ()


def test_a_person_gets_another_role_at_once_and_nobody_changes_their_own(
    admin: Browser, now: Callable[[], Policy]
) -> None:
    boris = desk.staff(ADMIN.tenant_id, {"Борис": "admin"})["Борис"]
    theirs = Browser(admin.client, desk.secret_of(boris))
    assert theirs.page(ROOT) is not None
    change = {"login": boris.login, "role": "operator", "name": "Борис Ильич"}
    assert admin.post("/desk/people/change", change).status_code == 303
    assert admin.client.get(ROOT, headers=theirs.cookie).status_code == 403
    assert operators.get(boris.login).name == "Борис Ильич"
    refused = admin.post("/desk/people/change", {"login": f"анна@{ADMIN.tenant_id}", "role": "operator", "name": "А"})
    assert refused.status_code == 422
    assert admin.post("/desk/people/sign-out", {"login": boris.login}).status_code == 303
    assert admin.client.get("/desk", headers=theirs.cookie).status_code == 303
    assert [one.act for one in settings_history.latest("person")][:1] == ["changed"]


def test_a_refused_person_or_approach_stays_typed_with_the_reason(admin: Browser) -> None:
    typed = {"login": "борис сергеевич", "name": "Борис", "role": "admin"}
    refused = parsed(admin.post("/desk/people/add", {**typed, "password": "снег идёт над рекой"}))
    form = next(one for one in refused.forms if one.action == "/desk/people/add")
    assert {name: form.fields[name] for name in typed} == typed
    refused = parsed(admin.post("/desk/rejected/add", {"text": " ", "reason": "Сломается замок"}))
    assert refused.xpath("string(//*[@role='alert'])").startswith("Опишите способ")
    form = next(one for one in refused.forms if one.action == "/desk/rejected/add")
    assert form.fields["reason"].strip() == "Сломается замок"


def test_a_form_of_too_many_fields_is_refused(admin: Browser) -> None:
    refused = admin.post(f"{ROOT}/synonyms", {f"field-{number}": "" for number in range(200)})
    assert refused.status_code == 422
    assert "Слишком много полей" in refused.text


def test_a_token_is_issued_used_replaced_and_revoked(admin: Browser, now: Callable[[], Policy]) -> None:
    path = f"{ROOT}/tokens"

    def status(token: str) -> int:
        return admin.client.get("/tools", headers={"Authorization": f"Bearer {token}"}).status_code

    refused = parsed(admin.post(path, {"subject": "crm", "days": "много", "admin": "true"}))
    assert refused.get_element_by_id("days-fault").text == "Нужно от 1 до 366 дней."
    assert values(refused, "form")["admin"] == "true"
    nothing = parsed(admin.post(path, {"subject": "crm", "days": "7"}))
    assert nothing.get_element_by_id("scopes-fault").text == "Отметьте хотя бы одно право."
    page = parsed(admin.post(path, {"subject": "crm", "days": "7", "admin": "true"}))
    first = page.get_element_by_id("new-token").text
    assert status(first) == 200
    # The list writes down the uses that the service still remembers.
    assert first not in html.tostring(admin.page(path), encoding="unicode")
    (known,) = issued_tokens.all()
    assert (known.subject, known.scopes, known.issued_by) == ("crm", ("admin",), f"анна@{ADMIN.tenant_id}")
    assert known.used_at is not None
    renewed = parsed(admin.post(f"{path}/rotate", {"token_id": known.token_id, "hours": "1"}))
    second = renewed.get_element_by_id("new-token").text
    assert (status(first), status(second)) == (200, 200)
    assert "заменён, ещё работает" in renewed.text_content()
    again = admin.post(f"{path}/rotate", {"token_id": known.token_id, "hours": "1"})
    assert again.status_code == 409
    assert "Он истёк, отозван или уже заменён" in again.text
    revoked = admin.post(f"{path}/revoke", {"token_id": known.token_id})
    assert revoked.headers["location"] == f"{path}?saved=revoked#revoked"
    # The service has revoked it itself, so it knows at once.
    assert (status(first), status(second)) == (401, 200)
    assert "Больше не работают: 1" in admin.page(path).text_content()
    assert "token" in {one.area for one in settings_history.latest()}
