"""Database tables of the desk: operators, sessions, one-time links, replies, articles, evaluations, feedback."""

from datetime import datetime
from hashlib import sha256
from uuid import uuid4

from sqlalchemy import JSON, ForeignKey, Index, String, Text, column
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.sealed import SealedJson, SealedText
from tenants.storage.tables import TENANT_ID, Base, JsonObject, TenantKeyed, TenantOwned, TenantRow


class OperatorRow(TenantOwned, Base):
    """A user of the desk. `login` is unique within a tenant.

    `tenant_id` is None for an admin of the installation.
    """

    __tablename__ = "operators"
    __table_args__ = (
        Index("ix_operators_login", "tenant_id", "login", unique=True),
        Index(
            "ix_operators_installation",
            "login",
            unique=True,
            sqlite_where=column("tenant_id").is_(None),
            postgresql_where=column("tenant_id").is_(None),
        ),
    )

    operator_id: Mapped[str] = mapped_column(String(32), primary_key=True, default=lambda: uuid4().hex)
    login: Mapped[str] = mapped_column(String(100))
    tenant_id: Mapped[str | None] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id))  # type: ignore[assignment]
    role: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(100))
    password: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]

    @property
    def password_digest(self) -> str:
        """Return a digest of the stored hash, another one for every password that is set."""
        return sha256(self.password.encode()).hexdigest()


class OperatorSessionRow(Base):
    """A browser in which an operator is signed in. The cookie holds a secret, this row only its digest."""

    __tablename__ = "operator_sessions"
    __table_args__ = (Index("ix_operator_sessions_operator", "operator_id"),)

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    operator_id: Mapped[str] = mapped_column(
        String(32), ForeignKey(OperatorRow.operator_id, ondelete="CASCADE", name="fk_session_operator")
    )
    address: Mapped[str] = mapped_column(String(64))
    browser: Mapped[str] = mapped_column(String(200))
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]


class OneTimeLinkRow(Base):
    """A link that opens the first run, once. The link holds a secret, this row only its digest."""

    __tablename__ = "one_time_links"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    created_at: Mapped[datetime]


class InvitationRow(TenantOwned, Base):
    """A link that makes the first admin of a tenant, once. The link holds a secret, this row only its digest."""

    __tablename__ = "invitations"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id))
    created_at: Mapped[datetime]


class CannedReplyRow(TenantKeyed, Base):
    """A reply for operators to insert, with placeholders such as `{name}` for data of the chat."""

    __tablename__ = "canned_replies"
    unknown = "reply_unknown"

    reply_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    title: Mapped[str] = mapped_column(String(100))
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class ArticleRow(TenantKeyed, Base):
    """An article written at the desk, published or not. `preview` is the last computed preview of its effect.

    `version` counts changes of the draft; `published_version` is the one that customers see. `chat_id` is the chat that
    it was written from, as long as the chat exists.
    """

    __tablename__ = "articles"
    unknown = "article_unknown"
    __table_args__ = (
        Index("ix_articles_tenant_updated", "tenant_id", "updated_at"),
        Index("ix_articles_chat", "tenant_id", "chat_id"),
    )

    article_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    questions: Mapped[list[str]] = mapped_column(JSON)
    lang: Mapped[str] = mapped_column(String(8))
    trust: Mapped[str] = mapped_column(String(32))
    version: Mapped[int]
    created_at: Mapped[datetime]
    created_by: Mapped[str] = mapped_column(TENANT_ID)
    updated_at: Mapped[datetime]
    updated_by: Mapped[str] = mapped_column(TENANT_ID)
    published_version: Mapped[int | None]
    published_at: Mapped[datetime | None]
    published_by: Mapped[str | None] = mapped_column(TENANT_ID)
    preview: Mapped[JsonObject | None] = mapped_column(JSON)
    chat_id: Mapped[str | None] = mapped_column(String(32))


class EvaluationRunRow(TenantKeyed, Base):
    """Results of an evaluation run on a tenant's knowledge base: figures only, no questions."""

    __tablename__ = "evaluation_runs"
    __table_args__ = (Index("ix_evaluation_runs_created", "tenant_id", "created_at"),)

    run_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    created_at: Mapped[datetime]
    summary: Mapped[JsonObject] = mapped_column(JSON)


class EvaluationQuestionRow(TenantKeyed, Base):
    """A question of the tenant's own evaluation, with what a right reply to it is. Both are encrypted.

    `question_id` is new whenever the question or the expectation changes, so that runs compare like with like.
    """

    __tablename__ = "evaluation_questions"

    question_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    question: Mapped[str] = mapped_column(SealedText)
    expected: Mapped[JsonObject] = mapped_column(SealedJson)
    created_at: Mapped[datetime]


class EvaluationResultRow(TenantKeyed, Base):
    """A run over the tenant's own questions. `answers` is encrypted; `figures` holds counts and no text.

    `loss` holds the shares that became worse since the run before; `seen_at` is the time of its acknowledgement.
    """

    __tablename__ = "evaluation_results"
    unknown = "evaluation_unknown"
    __table_args__ = (Index("ix_evaluation_results_created", "tenant_id", "created_at"),)

    run_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    nightly: Mapped[bool]
    state: Mapped[str] = mapped_column(String(16), default="running")
    reason: Mapped[str] = mapped_column(String(64), default="")
    done: Mapped[int] = mapped_column(default=0)
    total: Mapped[int]
    figures: Mapped[JsonObject] = mapped_column(JSON, default=dict)
    loss: Mapped[JsonObject | None] = mapped_column(JSON)
    seen_at: Mapped[datetime | None]
    answers: Mapped[JsonObject] = mapped_column(SealedJson, default=dict, deferred=True)


class FeedbackRow(TenantKeyed, Base):
    """A verdict on the answer of a turn. `person` and `session_id` are as in the audit's content."""

    __tablename__ = "feedback"
    __table_args__ = (
        Index("ix_feedback_tenant_at", "tenant_id", "at"),
        Index("ix_feedback_person", "tenant_id", "person"),
    )

    turn_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    person: Mapped[str] = mapped_column(String(32), primary_key=True)
    session_id: Mapped[str] = mapped_column(String(128))
    thumb: Mapped[str] = mapped_column(String(8))
    reason: Mapped[str | None] = mapped_column(String(16))
    comment: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
