"""Deployment settings: environment variables `OPORA_*`. Behaviour belongs to the pipelines' YAML, not here."""

from functools import cached_property, lru_cache
from ipaddress import ip_network
from pathlib import Path

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).parent

EMBEDDED = "embedded"
"""Profile of the base pipeline, which uses no models."""

PROFILE_NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"

_ADDRESS = r"^(https?://[^\s/]+\S*)?$"


class Settings(BaseSettings):
    """Settings of the service; every field has bounds and a description."""

    model_config = SettingsConfigDict(env_prefix="OPORA_", env_file=None, extra="ignore", frozen=True)

    data_dir: Path = Field(Path(".opora"), description="Data folder; each installation has its own.")
    models_dir: Path | None = Field(
        None, description="Folder of downloaded models; empty: `models` in the data folder."
    )
    fetch_models: bool = Field(True, description="Download the encoder at the first start.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(1416, ge=1, le=65535, description="Port to listen on.")
    drain_seconds: float = Field(
        0,
        ge=0,
        le=300,
        description="Seconds from SIGTERM, when `/readyz` starts to return 503, to the end of connections.",
    )
    connections_per_address: int = Field(
        500,
        ge=0,
        le=100_000,
        description="Open connections per address; 0: unlimited. Also list a load balancer in `OPORA_TRUSTED_PROXIES`.",
    )
    public_url: str = Field(
        "", pattern=_ADDRESS, description="Address by which browsers reach the service; empty: taken from each request."
    )
    trusted_proxies: str = Field(
        "",
        description="Addresses or networks of reverse proxies whose `X-Forwarded-For` and `-Proto` are trusted.",
    )
    pipelines_dir: Path = Field(ROOT / "pipelines", description="Folder of pipelines, with one subfolder per endpoint.")

    database_url: str = Field(
        "", description="SQLAlchemy URL of the records database; empty: SQLite in the data folder."
    )
    database_connect_seconds: int = Field(
        5, ge=1, le=60, description="Timeout of one attempt to connect to PostgreSQL."
    )
    database_statement_seconds: int = Field(
        30, ge=1, le=3_600, description="Timeout of a PostgreSQL statement, and of waiting for a lock or a connection."
    )
    qdrant_url: str = Field("", description="URL of a Qdrant server; empty: the embedded engine in the data folder.")
    qdrant_api_key: SecretStr = Field(SecretStr(""), description="API key of the Qdrant server.")

    placement: str = Field(
        "own",
        pattern="^(own|tiered)$",
        description="Collections on the Qdrant server: `own`, one per tenant; `tiered`: small tenants share one.",
    )
    shared_chunks: int = Field(
        20_000,
        ge=1,
        le=1_000_000,
        description="Maximum number of chunks of a tenant that shares a collection (`tiered`).",
    )
    qdrant_replicas: int = Field(1, ge=1, le=32, description="Replicas of a new collection in a Qdrant cluster.")
    qdrant_written_replicas: int = Field(
        1, ge=1, le=32, description="Replicas that must confirm a write to a new collection."
    )

    files_url: str = Field(
        "",
        description="Store of uploads and of files in chats, such as `s3://bucket/opora`; empty: the data folder.",
    )
    data_keys: SecretStr = Field(
        SecretStr(""),
        description="Secrets that encrypt stored data, newest first, separated by commas; empty: generated.",
    )
    backup_key: SecretStr = Field(
        SecretStr(""), description="Passphrase of backups, or an age key; `opora backup` and `opora restore` need it."
    )
    erasure_journal: Path | None = Field(
        None, description="File that records every erasure for `opora restore`; empty: one in the data folder."
    )
    token_keys: SecretStr = Field(
        SecretStr(""),
        description="Secrets that sign tokens, newest first, separated by commas; empty: generated.",
    )
    token_issuer: str = Field("opora", min_length=1, description="Required `iss` of every token.")
    token_audience: str = Field("opora", min_length=1, description="Required `aud` of every token.")
    token_skew_seconds: int = Field(60, ge=0, le=300, description="Clock skew allowed in `exp`, `nbf` and `iat`.")
    token_jwks_file: Path | None = Field(
        None, description="JWKS file with an identity provider's public keys (RS256, ES256)."
    )

    default_locale: str = Field(
        "ru", pattern="^(ru|en)$", description="Locale used when neither the request nor the tenant sets one."
    )
    rate_limit_per_minute: int = Field(
        60, ge=0, le=1_000_000, description="Questions per person per minute; 0: unlimited."
    )
    rate_limit_per_day: int = Field(
        5_000, ge=0, le=100_000_000, description="Questions per person per day; 0: unlimited."
    )
    visitor_sessions_per_minute: int = Field(
        60, ge=0, le=1_000_000, description="Visitor tokens per minute and address; 0: unlimited."
    )
    site_sessions_per_minute: int = Field(
        3_000, ge=0, le=100_000_000, description="Visitor tokens per minute and site; 0: unlimited."
    )
    chat_messages_per_minute: int = Field(
        30, ge=0, le=1_000_000, description="Messages per minute of a customer in one chat; 0: unlimited."
    )
    sign_ins_per_minute: int = Field(
        5,
        ge=0,
        le=1_000_000,
        description="Attempts per minute from one address to sign in as one operator; 0: unlimited.",
    )
    max_body_bytes: int = Field(1_000_000, ge=1_000, le=100_000_000, description="Maximum request body of a question.")
    max_upload_bytes: int = Field(
        10_000_000, ge=1_000, le=1_000_000_000, description="Maximum request body of `POST /ingest/run`."
    )
    max_files_bytes: int = Field(
        500_000_000, ge=1_000, le=100_000_000_000, description="Maximum total size of the files in one upload."
    )
    queued_jobs: int = Field(100, ge=1, le=100_000, description="Maximum number of queued jobs per tenant.")
    queued_bytes: int = Field(
        5_000_000_000, ge=1_000, le=10**13, description="Maximum total size of the files in a tenant's queued jobs."
    )
    max_chunks: int = Field(
        1_000_000,
        ge=0,
        le=10**9,
        description="Maximum number of chunks in a tenant's knowledge base; 0: unlimited.",
    )
    spend_cap_usd_per_day: float | None = Field(
        None,
        ge=0,
        description="Daily limit in US dollars on a tenant's model calls; its policy may lower it. Unset: unlimited.",
    )
    chat_bytes_per_day: int = Field(
        5_000_000_000,
        ge=0,
        le=10**13,
        description="Bytes of messages, webhook events and e-mails that a tenant's chats may write a day; 0: "
        "unlimited. Customers' messages are refused at three quarters of it.",
    )
    disk_reserve_bytes: int = Field(
        500_000_000,
        ge=0,
        le=10**13,
        description="Bytes on the data folder's disk that ingesting and chats leave free.",
    )
    watch_dir: Path | None = Field(
        None, description="Folder with one subfolder per tenant id, whose files are ingested as they change."
    )
    redis_url: SecretStr = Field(
        SecretStr(""),
        description="URL of Redis or Valkey, through which replicas notify each other; required for several replicas.",
    )
    check_hour: int = Field(
        3, ge=-1, le=23, description="Hour (UTC) of the nightly check of every index against its documents; -1: never."
    )
    turn_timeout_seconds: float = Field(60, gt=0, le=600, description="Time budget of one turn.")
    workers: int = Field(
        2, ge=1, le=64, description="Questions that compute at once per process; more than 2 brings no gain."
    )
    worker: str = Field(
        "embedded",
        pattern="^(embedded|external)$",
        description="Background work: `embedded` in each service, or `external`, by `opora worker` alone.",
    )
    profile: str = Field(EMBEDDED, pattern=PROFILE_NAME, description="Profile of tenants that do not choose one.")
    rerank: bool = Field(
        False, description="With a profile that has models, let one also order the documents: one more call a question."
    )
    ollama_url: str = Field(
        "",
        pattern=_ADDRESS,
        description="Base URL of Ollama, replaces `http://127.0.0.1:11434` in profiles; empty: not replaced.",
    )
    model_workers: int = Field(
        64, ge=1, le=1_000, description="Questions that may wait for models or tools at the same time."
    )
    otlp_endpoint: str = Field(
        "",
        pattern=_ADDRESS,
        description="Full OTLP/HTTP URL for traces; empty: Phoenix, if it is configured.",
    )
    phoenix_url: str = Field(
        "", pattern=_ADDRESS, description="Base URL of Phoenix, which receives traces and scores; empty: none."
    )
    phoenix_api_key: SecretStr = Field(SecretStr(""), description="API key of Phoenix, if it requires one.")
    audit_days: int = Field(
        396, ge=1, le=36_500, description="Days to keep turns in the audit; the default is 13 months."
    )
    ticket_days: int = Field(
        396,
        ge=1,
        le=36_500,
        description="Days to keep questions that were handed over from outside chats. If the policy sets `chat_days`, "
        "also the least number of days to keep a chat that is back with the assistant while its ticket is open.",
    )
    tool_networks: str = Field(
        "",
        pattern=r"^([0-9a-fA-F.:]+/\d{1,3}(,[0-9a-fA-F.:]+/\d{1,3})*)?$",
        description="Networks, such as 10.1.0.0/16, that tools and webhooks may be in; empty: public addresses only.",
    )
    smtp_host: str = Field(
        "", description="Mail server that sends replies to customers and alerts; empty: no e-mail is sent."
    )
    smtp_port: int = Field(587, ge=1, le=65535, description="Port of the mail server.")
    smtp_tls: str = Field(
        "starttls",
        pattern="^(starttls|tls|none)$",
        description="Encryption: `starttls` (port 587), `tls` (port 465) or `none`.",
    )
    smtp_user: str = Field("", description="User at the mail server; empty: no sign-in.")
    smtp_password: SecretStr = Field(SecretStr(""), description="Password at the mail server.")
    smtp_from: str = Field(
        "",
        pattern=r"^([^@\s<>]+@[^@\s<>]+)?$",
        description="Sender's address, that of the mailbox below; empty: `OPORA_SMTP_USER`.",
    )
    emails_per_hour: int = Field(
        500, ge=1, description="E-mails that a tenant may send in an hour; the rest are sent later."
    )
    imap_host: str = Field(
        "", description="Server of the mailbox that customers' answers arrive in; empty: they are not read."
    )
    imap_port: int = Field(993, ge=1, le=65535, description="Port of the mailbox.")
    imap_tls: str = Field(
        "tls",
        pattern="^(starttls|tls|none)$",
        description="Encryption: `tls` (port 993), `starttls` (port 143) or `none`.",
    )
    imap_user: str = Field("", description="User of the mailbox.")
    imap_password: SecretStr = Field(SecretStr(""), description="Password of the mailbox.")
    imap_folder: str = Field("INBOX", min_length=1, description="Folder of the mailbox.")
    imap_seconds: int = Field(30, ge=5, le=3_600, description="Seconds between two checks of the mailbox.")
    api_docs: bool = Field(
        True, description="Serve the API description at `/openapi.json` and `/docs`, without a token."
    )
    metrics_token: SecretStr = Field(
        SecretStr(""),
        description="Bearer token that Prometheus needs for `GET /metrics`; empty: there is no such route.",
    )
    log_format: str = Field("text", pattern="^(text|json)$", description="Lines of the log: `text` or `json`.")
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="Minimum log level.")

    @field_validator("placement")
    @classmethod
    def _check_placement(cls, value: str, info: ValidationInfo) -> str:
        if value == "tiered" and not info.data.get("qdrant_url"):
            raise PydanticCustomError("placement_embedded", "the embedded engine keeps a folder per tenant")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: str) -> str:
        for network in filter(None, value.split(",")):
            ip_network(network)
        return value

    @cached_property
    def database(self) -> str:
        """Effective SQLAlchemy URL."""
        return self.database_url or f"sqlite:///{self.data_dir / 'opora.db'}"

    @property
    def has_records(self) -> bool:
        """Whether Opora may have stored anything: false where its data folder is missing or empty."""
        return bool(self.database_url) or (self.data_dir.is_dir() and any(self.data_dir.iterdir()))

    @property
    def address(self) -> str:
        """URL of the service on this machine."""
        return f"http://{self.host}:{self.port}"

    @property
    def browsed_at(self) -> str:
        """URL of the service for browsers, as far as the settings tell."""
        return self.public_url.rstrip("/") or self.address

    @property
    def mail_from(self) -> str:
        """Sender's address of e-mails."""
        return self.smtp_from or self.smtp_user

    @property
    def models(self) -> Path:
        """Absolute path of the models folder."""
        return (self.models_dir or self.data_dir / "models").resolve()

    @property
    def traces_to(self) -> str:
        """OTLP endpoint for traces; empty if tracing is off."""
        return self.otlp_endpoint or (f"{self.phoenix_url.rstrip('/')}/v1/traces" if self.phoenix_url else "")

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the available profiles: the base pipeline and each file in the profiles folder."""
        return (EMBEDDED, *sorted(path.stem for path in (self.pipelines_dir / "ask" / "profiles").glob("*.yaml")))

    @cached_property
    def index_place(self) -> str:
        """Location of the index: the server's URL, or the absolute path of the embedded engine's folder."""
        return self.qdrant_url or str(self.data_dir.resolve())


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the process-wide settings, read once. Tests call `get_settings.cache_clear()` after changing the
    environment.
    """
    return Settings()
