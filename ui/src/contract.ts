/** Types of the API: sites, chats, messages, and the parts of `turn.v1` that customers see. */

export type Outcome =
  | 'answered'
  | 'partially_answered'
  | 'low_confidence'
  | 'clarify'
  | 'refused'
  | 'cannot_answer'
  | 'human_followup'
  | 'high_stakes'
  | 'out_of_scope'
  | 'irrelevant'
  | 'nonsense'
  | 'blocked'
  | 'failed';

export interface Citation {
  readonly index: number;
  readonly doc_id: string;
  readonly title: string;
  readonly heading: string;
  readonly excerpt?: string;
  /** Beginning of a passage, while the answer is in progress. */
  readonly snippet?: string;
  readonly span?: readonly [number, number];
  readonly url: string | null;
  readonly cited?: boolean;
  readonly origin?: 'primary' | 'related' | 'conflicting';
  readonly updated_at?: string;
}

export interface Source {
  readonly page_content: string;
  readonly snippet: string;
}

export interface Claim {
  readonly text: string;
  readonly status: string;
  readonly citations: readonly number[];
  readonly quote: string;
}

export interface Article {
  readonly doc_id: string;
  readonly title: string;
  readonly heading: string;
  readonly url: string | null;
  readonly snippet: string;
  /** Full section; older answers have none. */
  readonly text?: string;
  /** Other sections of the same article; older answers have none. */
  readonly sections?: readonly { readonly heading: string; readonly url: string }[];
}

export interface Turn {
  readonly turn_id: string;
  readonly outcome: Outcome;
  readonly refusal_reason: string | null;
  readonly answer: {
    readonly text: string;
    readonly notice: string | null;
    readonly verified: boolean;
    readonly missing: readonly string[];
  };
  readonly citations: readonly Citation[];
  readonly sources: readonly Source[];
  readonly claims: readonly Claim[];
  readonly articles: readonly Article[];
  readonly suggested_questions: readonly string[];
  readonly clarification: { readonly options: readonly string[] } | null;
  readonly meta: {
    readonly latency_ms: number;
    readonly llm_calls: number;
    readonly tokens: { readonly total?: number };
    readonly cost_usd: number | null;
  };
  readonly handoff: {
    readonly status: 'open' | 'offered' | 'failed';
    readonly ticket_id: string | null;
    readonly channel: string | null;
    readonly offer: string | null;
    /** Working hours. If known, the answer text mentions them. */
    readonly staffing: object | null;
  } | null;
}

export interface Chat {
  readonly chat_id: string;
  readonly state: 'bot' | 'queued' | 'human' | 'snoozed' | 'resolved';
  readonly owner: 'bot' | 'human' | 'nobody';
  readonly assignee_name: string | null;
  readonly version: number;
  readonly last_seq: number;
  readonly ticket_id: string | null;
  /** The customer waits for a person and has left no e-mail address or phone number. */
  readonly contact_wanted: boolean;
  readonly csat: number | null;
  readonly customer_seen: number;
  readonly locale: string;
}

export interface FileInfo {
  readonly file_id: string;
  readonly name: string;
  readonly size: number;
  readonly media_type: string;
}

export interface Message {
  readonly message_id: string;
  readonly seq: number;
  readonly author: 'customer' | 'bot' | 'operator' | 'system';
  readonly kind: 'text' | 'event' | 'file' | 'note';
  readonly text: string;
  readonly name: string;
  readonly client_id: string | null;
  readonly turn_id: string;
  readonly body: {
    readonly turn?: Turn;
    readonly event?: string;
    readonly file?: FileInfo;
    readonly [more: string]: unknown;
  };
  readonly created_at: string;
}

export interface Site {
  readonly name: string;
  readonly locale: string;
  readonly theme: Readonly<Record<string, string>>;
  readonly welcome: string;
  readonly suggested: readonly string[];
  readonly consent: { readonly text: string; readonly url: string | null } | null;
  readonly hours: { readonly open: boolean; readonly text: string } | null;
  readonly limits: { readonly file_bytes: number; readonly question: number };
}

export interface Session {
  readonly token: string;
  readonly expires_in: number;
  readonly subject: string;
  /** Whether the customer may branch chats and see what answers cost. */
  readonly tools: boolean;
  readonly site: Site;
}

/** Event of a chat's stream, also passed between tabs. */
export interface StreamEvent {
  readonly name: string;
  readonly data: Record<string, unknown>;
}

export interface Config {
  /** Base URL of the service, without a trailing slash. */
  readonly base: string;
  readonly site: string;
  /** Supported language that the page or the browser asks for; else empty until the session names the site's. */
  locale: string;
  /** JWT by which the host page identifies the customer. */
  readonly identity: string | null;
  /** Whether the chat fills the page instead of its corner. */
  readonly page: boolean;
}

/** Interface between the loader and the chat. */
export interface Mounted {
  open(): void;
  close(): void;
  /** Resume an existing chat, so that answers are counted while the panel is closed. */
  resume(): void;
}

export interface Host {
  readonly root: ShadowRoot;
  readonly config: Config;
  opened(open: boolean): void;
  unread(count: number, locale: string): void;
}
