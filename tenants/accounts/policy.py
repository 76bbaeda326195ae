"""Settings of a tenant's assistant. Stored with the tenant; changes take effect at once, on other replicas too."""

from asyncio import to_thread
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, StringConstraints

from settings import PROFILE_NAME, get_settings
from tenants.accounts import registry, settings_history
from tenants.accounts.hours import Hours
from tenants.accounts.registry import TenantRecord
from tenants.core.errors import Invalid
from tenants.core.scoped import scoped
from tenants.core.validation import FrozenModel, validated
from tenants.storage.tables import TenantRow

Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
Phrase: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]
Domain: TypeAlias = Annotated[
    str, StringConstraints(to_lower=True, pattern=r"^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$", max_length=253)
]
EmailAddress: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$")
]
Synonyms: TypeAlias = Annotated[
    tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=60)], ...],
    Field(min_length=2, max_length=10),
]
ProfileName: TypeAlias = Annotated[str, StringConstraints(pattern=PROFILE_NAME)]
Limit: TypeAlias = Annotated[int, Field(ge=0, le=100_000_000)]
MAX_FILE_SIZE = 20_000_000
"""Bytes. A file of a chat is held in memory while it is scanned."""


class Policy(FrozenModel):
    """Every field is bounded, and its default is the careful one."""

    name: Text = Field("Opora", description="Name that the assistant uses for the company.")
    locale: Literal["ru", "en"] = Field("ru", description="Language if the request names none.")
    approved_offers: dict[str, Text] = Field(
        default_factory=dict,
        description="Offers the assistant may make, by risk (`cancellation`); one under `cancellation/order refund` is "
        "made only if the request has one of these words. It makes no other offers.",
    )
    topics_ru: Phrase | None = Field(
        None, description="Completes “Я отвечаю на вопросы о …” in the reply to an off-topic message."
    )
    topics_en: Phrase | None = Field(
        None,
        description="Completes “I can answer questions about …” in the reply to an off-topic message.",
    )
    handoff_channel: Text = Field(
        "operator",
        description="How customers reach people without the chat, such as a phone number and its hours; shown with "
        "the number of a request. `operator`: not shown.",
    )
    top_k: int = Field(5, ge=1, le=20, description="Passages that an answer may cite.")
    allowed_domains: tuple[Domain, ...] = Field(
        (),
        description="Domains that an answer may link to, subdomains included; empty: those of its own sources, and "
        "links that a cited document contains.",
    )
    answer_threshold: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0,
        description="Minimum confidence at which a quotation is shown, besides the pipeline's own thresholds; below "
        "it, articles are offered.",
    )
    low_confidence_to_human: bool = Field(
        False, description="Hand a weakly supported answer over to a person instead of showing it with a notice."
    )
    spent_budget_to_person: Literal["staffed", "always", "never"] = Field(
        "staffed",
        description="When to call a person if every search pass is used and no answer is confirmed; `staffed`: within "
        "the hours in which people answer or, if none are set, while an operator uses the desk.",
    )
    failures_to_person: Annotated[int, Field(ge=0, le=100)] = Field(
        2, description="Questions in a row without an answer or an article before a person is called; 0: never."
    )
    hours: Hours | None = Field(None, description="When people answer, unless a site has its own hours.")
    chat_tools: Literal["nobody", "identified", "everyone"] = Field(
        "nobody",
        description="Customers who may continue from an answer in a new chat, and see the time, tokens and "
        "cost of each answer, where the chat fills a page.",
    )
    queue_minutes: Annotated[int, Field(ge=0, le=100_000)] = Field(
        0,
        description="Minutes a chat waits for a person before the assistant answers again; 0: until one takes it.",
    )
    chat_file_bytes: Annotated[int, Field(ge=0, le=MAX_FILE_SIZE)] = Field(
        5_000_000, description="Maximum size in bytes of a file that a customer sends in a chat; 0: no files."
    )
    chat_files: Annotated[int, Field(ge=0, le=1_000)] = Field(
        20, description="Maximum number of files that a customer sends in one chat."
    )
    chat_storage_bytes: Annotated[int, Field(ge=0, le=10**13)] = Field(
        2_000_000_000, description="Maximum total size in bytes of the files in all chats."
    )
    chat_file_days: Annotated[int, Field(ge=1, le=36_500)] = Field(
        396, description="Days to keep the files of chats; the default is 13 months."
    )
    chat_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        None,
        description="Days to keep a chat after its last message; empty: no limit. A chat that waits for a person, or "
        "that a person has taken, is kept until it is resolved. A chat that is back with the assistant while its "
        "ticket is open is kept for at least `OPORA_TICKET_DAYS`.",
    )
    audit_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        None, description="Days to keep turns in the audit; overrides the installation's setting."
    )
    email_replies: bool = Field(
        True,
        description="Ask customers who wait for a person how to reach them, and e-mail them replies that they have not "
        "read; needs `OPORA_SMTP_HOST`.",
    )
    email_from_name: Phrase | None = Field(
        None,
        description="Sender's name of e-mails to customers, the first 50 characters; empty: the company's name.",
    )
    email_after_minutes: Annotated[int, Field(ge=0, le=1_440)] = Field(
        5, description="Minutes after which a reply that the customer has not read is e-mailed."
    )
    alert_email: EmailAddress | None = Field(
        None,
        description="Where alerts go by e-mail, such as a drop of the nightly evaluation; empty: to administrators "
        "whose login is an e-mail address.",
    )
    synonyms: tuple[Synonyms, ...] = Field(
        (), max_length=100, description="Groups of words that mean the same; those that the articles lack are replaced."
    )
    profile: ProfileName | Literal[""] = Field(
        "", description="Profile that answers questions; empty: the installation's."
    )
    streaming: Literal["verified", "optimistic"] = Field(
        "verified",
        description="Stream an answer once its sentences are verified, or while it is written, taken back if needed.",
    )
    spend_cap_usd_per_day: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Daily limit in US dollars on language models; beyond it, answers only quote documents."
    )
    evaluation_hour: Annotated[int, Field(ge=0, le=23)] | None = Field(
        3, description="Hour at which the tenant's own evaluation questions are asked, every night; empty: never."
    )
    trace_content: bool = Field(
        False,
        description="Send questions, prompts, passages and answers to the trace server and keep prompts in the audit, "
        "without personal data.",
    )
    rate_limit_per_minute: Limit | None = Field(None, description="Overrides the installation's limit; 0: unlimited.")
    rate_limit_per_day: Limit | None = Field(None, description="Overrides the installation's limit; 0: unlimited.")

    def topics(self, locale: str) -> str:
        """Return what the assistant answers questions about, as a phrase of this language; empty if it is not set."""
        return (self.topics_ru if locale == "ru" else self.topics_en) or ""

    def has_chat_tools(self, *, identified: bool) -> bool:
        """Return whether a customer may branch a chat and see what answers cost."""
        return self.chat_tools == "everyone" or (identified and self.chat_tools == "identified")


class _Bounds(BaseModel):
    """Bounds of lists that a tenant may have stored before there were any: they apply to changes only."""

    approved_offers: Annotated[
        dict[Annotated[str, StringConstraints(max_length=200)], object], Field(max_length=100)
    ] = {}
    allowed_domains: Annotated[tuple[object, ...], Field(max_length=500)] = ()


_OVERRIDE: ContextVar[Policy | None] = ContextVar("opora_policy_tried", default=None)


def current() -> Policy:
    """Return the policy of the tenant in context."""
    return _OVERRIDE.get() or of(registry.current())


def latest() -> Policy:
    """Return the policy as stored now, for a caller that is about to change it; another process may have changed it."""
    registry.refresh()
    return current()


async def load() -> Policy:
    """Return the policy of the tenant in context. Safe on the event loop: a database query runs in a thread."""
    tried = _OVERRIDE.get()
    if tried is not None:
        return tried
    # Read once: between two reads the record could expire and be loaded on the loop.
    record = registry.in_memory()
    return of(record) if record is not None else await to_thread(current)


def overridden(policy: Policy) -> AbstractContextManager[Policy]:
    """Run the block with this policy; nothing is stored."""
    return scoped(_OVERRIDE, policy)


def of(tenant: TenantRecord | TenantRow) -> Policy:
    """Return the policy of a tenant, with its name and locale."""
    return Policy.model_validate({**tenant.policy, "name": tenant.name, "locale": tenant.locale})


def version_of(policy: Policy) -> str:
    """Return the version of the policy that a form was filled in from."""
    return settings_history.version_of(policy.model_dump(mode="json"))


def change(**fields: object) -> Policy:
    """Change some fields and apply the result. Raises the same errors as `apply`."""
    return apply(fields)


def apply(fields: Mapping[str, object], version: str = "") -> Policy:
    """Change some fields and apply the result. A value equal to the default is not stored and follows the default.

    :param version: of the policy that the caller has read (`version_of`); empty skips the check.
    :raises Conflict: `settings_changed`, if it has changed since.
    :raises Invalid: the errors of `with_changes`.
    """
    with_changes(fields)  # A refusal takes long and must not keep the tenant locked.
    with registry.changing() as (session, row):
        before = of(row)
        stored = before.model_dump(mode="json")
        settings_history.check_version(version, stored)
        changed = with_changes(fields, before)
        row.name, row.locale = changed.name, changed.locale
        row.policy = changed.model_dump(mode="json", exclude_defaults=True, exclude={"name", "locale"})
        settings_history.note(session, "policy", "changed", "", stored, changed.model_dump(mode="json"))
    return changed


def with_changes(fields: Mapping[str, object], before: Policy | None = None) -> Policy:
    """Return the policy with some fields changed, without applying it.

    :param before: the policy to change; the current one if None.
    :raises Invalid: `policy_invalid` with the field, or `profile_unknown` with the available profiles.
    """
    before = before or current()
    changed = validated(Policy, {**before.model_dump(), **fields}, "policy_invalid")
    validated(_Bounds, {name: value for name, value in changed if value != getattr(before, name)}, "policy_invalid")
    if "profile" in fields and changed.profile:
        check_profile(changed.profile)
    return changed


def check_profile(name: str) -> None:
    """Raise `Invalid`, `profile_unknown`, if no profile has this name."""
    if name not in (profiles := get_settings().profiles):
        raise Invalid("profile_unknown", name=name, names=", ".join(profiles))
