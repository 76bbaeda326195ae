/** A conversation as this browser knows it, and all that a customer can do in it. */

import { Api, Problem } from './api';
import { Connection, type Link } from './connection';
import type { Chat, Citation, Config, FileInfo, Message, Session, Site, StreamEvent } from './contract';
import { Memory, type Pending, uuid } from './storage';
import type { Key, Texts } from './texts';

/** An answer that is being written. */
export interface Live {
  readonly turnId: string;
  readonly text: string;
  readonly notice: string;
  readonly checking: boolean;
  readonly citations: readonly Citation[];
  readonly correction: 'revised' | 'retracted' | null;
  /** Seen from its first event on. An answer that was joined in the middle is shown once it is whole. */
  readonly whole: boolean;
}

export interface Attachment {
  readonly name: string;
  readonly info: FileInfo | null;
  readonly fault: string | null;
}

const CONNECTED_MS = 1_500;
const TYPING_SHOWN_MS = 6_000;
const TYPING_SENT_MS = 3_000;
const FAULTS: Readonly<Record<number, Key>> = { 429: 'rate_limited' };

export class Conversation {
  readonly memory: Memory;
  site: Site | null = null;
  chat: Chat | null = null;
  messages: readonly Message[] = [];
  pending: readonly Pending[] = [];
  live: Live | null = null;
  link: Link = 'connecting';
  typing = '';
  looking = '';
  stopped = false;
  consented = false;
  /** The service has the consent: it is asked for no more. */
  consentStored = false;
  attachment: Attachment | null = null;
  /** Why there is no chat at all. */
  refusal: Key | null = null;
  fault: Key | null = null;
  /** What a screen reader says next. */
  spoken = '';
  readonly votes = new Map<string, 'up' | 'down'>();
  open = false;

  private readonly api: Api;
  private connection: Connection | null = null;
  private starting: Promise<void> | null = null;
  private flushing = false;
  private typingTimer = 0;
  private typingSentAt = 0;
  private seen = 0;
  private onConnected: () => void = () => undefined;

  constructor(
    config: Config,
    readonly texts: Texts,
    private readonly changed: () => void,
  ) {
    this.memory = new Memory(config.site);
    this.api = new Api(config, this.memory);
    this.pending = this.memory.read().pending ?? [];
    addEventListener('online', () => this.resumeSending());
    document.addEventListener('visibilitychange', () => this.markSeen());
  }

  /** Begin, or begin again after a refusal. */
  start(): Promise<void> {
    this.starting ??= this.begin().catch((problem: unknown) => {
      this.starting = null;
      const { status, code } = problem instanceof Problem ? problem : { status: 0, code: '' };
      this.refusal = code === 'identity_required' ? 'identity' : status === 403 || status === 404 ? 'forbidden' : 'unavailable';
      this.changed();
    });
    return this.starting;
  }

  get unread(): number {
    if (this.open || !this.chat) return 0;
    const seen = Math.max(this.chat.customer_seen, this.seen);
    return this.messages.filter((one) => one.seq > seen && (one.author === 'bot' || one.author === 'operator')).length;
  }

  /** What has been replaced by an edit or by another answer stays in the records and out of sight. */
  get shown(): readonly Message[] {
    const hidden = new Set<number>();
    for (const one of this.messages) {
      const id = one.body['replaces'];
      const replaced = typeof id === 'string' ? this.messages.find((other) => other.message_id === id) : undefined;
      if (!replaced) continue;
      hidden.add(replaced.seq);
      if (one.author !== 'customer') continue;
      // Whatever the assistant said to the question as it was goes with it.
      const answers = this.messages.filter((other) => other.seq > replaced.seq && other.seq < one.seq);
      for (const answer of answers) if (answer.author === 'bot' || answer.body.event === 'stopped') hidden.add(answer.seq);
    }
    return this.messages.filter((one) => !hidden.has(one.seq));
  }

  /** The assistant is to answer, or is answering. */
  get awaiting(): boolean {
    if (this.live) return true;
    return this.botOwns && !this.stopped && (this.pending.some((one) => !one.failed) || this.awaitsAnswer());
  }

  get botOwns(): boolean {
    return !this.chat || this.chat.owner === 'bot';
  }

  get needsConsent(): boolean {
    return Boolean(this.site?.consent) && !this.consented;
  }

  get lastBot(): Message | undefined {
    const last = this.shown.findLast((one) => one.kind !== 'event');
    return last?.author === 'bot' ? last : undefined;
  }

  get lastCustomer(): Message | undefined {
    return this.shown.findLast((one) => one.author === 'customer' && one.kind === 'text');
  }

  agree(agreed: boolean): void {
    this.consented = agreed;
    this.changed();
  }

  /** Messages stay on their way until the service has them, whatever happens to the connection or the page. */
  send(text: string): void {
    const file = this.attachment?.info;
    const words = text.trim() || file?.name || '';
    if (!words || this.needsConsent) return;
    const sent: Pending = { client_id: uuid(), text: words, ...(file ? { file_id: file.file_id } : {}) };
    this.attachment = null;
    this.stopped = false;
    this.fault = null;
    this.setPending([...this.pending, sent]);
    void this.flush();
  }

  resend(clientId: string): void {
    this.setPending(this.pending.map(({ failed: _, ...one }) => (one.client_id === clientId ? one : { ...one })));
    void this.flush();
  }

  async edit(message: Message, text: string): Promise<void> {
    if (!text.trim() || text.trim() === message.text) return;
    this.stopped = false;
    await this.act('edit', { message_id: message.message_id, text: text.trim(), client_id: uuid() });
  }

  async regenerate(turnId: string): Promise<void> {
    this.stopped = false;
    await this.act('regenerate', { turn_id: turnId });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.live = null;
    this.spoken = this.texts.say('event_stopped');
    await this.act('stop');
  }

  async person(): Promise<void> {
    if (this.needsConsent) {
      this.fault = 'consent_needed';
      this.changed();
      return;
    }
    await this.attempt(async () => {
      await this.ensureChat();
      this.take(await this.api.json<Chat>('POST', this.path('person'), {}));
    });
  }

  async rate(csat: number, comment: string): Promise<void> {
    await this.attempt(async () => {
      await this.api.json('POST', this.path('rating'), { csat, comment });
      if (this.chat) this.chat = { ...this.chat, csat };
      this.spoken = this.texts.say('thanks');
    });
  }

  async vote(turnId: string, thumb: 'up' | 'down'): Promise<void> {
    this.votes.set(turnId, thumb);
    this.changed();
    await this.attempt(() => this.api.json('POST', '/feedback', { turn_id: turnId, thumb }));
  }

  async attach(file: File): Promise<void> {
    const limit = this.site?.limits.file_bytes ?? 0;
    const shown = { name: file.name, info: null };
    if (this.needsConsent) this.fault = 'consent_needed';
    else if (file.size > limit) {
      const size = Math.floor(limit / 1024 / 1024);
      this.attachment = { ...shown, fault: this.texts.say('too_large', { size }) };
    } else {
      this.attachment = { ...shown, fault: null };
      this.changed();
      try {
        await this.ensureChat();
        const form = new FormData();
        form.append('file', file);
        const response = await this.api.request('POST', this.path('files'), { form });
        this.attachment = { name: file.name, info: (await response.json()) as FileInfo, fault: null };
      } catch (problem) {
        const detail = problem instanceof Problem ? problem.detail : '';
        this.attachment = { ...shown, fault: detail || this.texts.say('upload_failed') };
      }
    }
    this.changed();
  }

  detach(): void {
    this.attachment = null;
    this.changed();
  }

  file(fileId: string): Promise<Blob> {
    return this.api.request('GET', this.path(`files/${encodeURIComponent(fileId)}`)).then((response) => response.blob());
  }

  transcript(): Promise<Blob> {
    return this.api.request('GET', this.path('transcript')).then((response) => response.blob());
  }

  /** Say that the customer is writing: only people care, and not at every key. */
  typed(active: boolean): void {
    if (this.botOwns || !this.chat) return;
    const now = Date.now();
    if (active && now - this.typingSentAt < TYPING_SENT_MS) return;
    this.typingSentAt = active ? now : 0;
    void this.api.json('POST', this.path('typing'), { active }).catch(() => undefined);
  }

  markSeen(): void {
    const last = this.messages.at(-1)?.seq ?? 0;
    if (!this.open || !this.chat || document.visibilityState !== 'visible') return;
    if (last <= Math.max(this.seen, this.chat.customer_seen)) return;
    this.seen = last;
    void this.api.json('POST', this.path('seen'), { seq: last }).catch(() => undefined);
  }

  /** Leave a chat that has ended for a new one. */
  startOver(): void {
    this.connection?.stop();
    this.connection = null;
    this.chat = null;
    this.messages = [];
    this.live = null;
    this.seen = 0;
    this.memory.write({ chat: '' });
    this.changed();
  }

  private async begin(): Promise<void> {
    const session: Session = await this.api.start();
    this.site = session.site;
    this.refusal = null;
    this.consentStored = !session.site.consent || this.memory.read().consent === session.site.consent.text;
    this.consented ||= this.consentStored;
    const [latest] = await this.api.json<Chat[]>('GET', '/chats');
    if (latest) this.enter(latest);
    else this.link = 'online';
    this.changed();
    void this.flush();
  }

  private enter(chat: Chat): void {
    this.chat = chat;
    this.memory.write({ chat: chat.chat_id });
    this.connection?.stop();
    this.link = 'connecting';
    this.connection = new Connection(this.api, chat.chat_id, {
      event: (event) => this.receive(event),
      link: (link) => {
        this.link = link;
        if (link === 'online') {
          this.onConnected();
          this.resumeSending();
        }
        this.changed();
      },
      last: () => this.messages.at(-1)?.seq ?? 0,
      live: () => this.live,
      adopt: (live) => {
        this.live = live as Live | null;
        this.changed();
      },
    });
    this.connection.start();
  }

  private async ensureChat(): Promise<void> {
    await this.start();
    if (!this.site) throw new Problem(0, 'unreachable');
    if (!this.chat) {
      this.enter(await this.api.json<Chat>('POST', '/chats', { locale: this.texts.locale }));
      await this.connected();
    }
    const text = this.site.consent?.text;
    if (!text || this.consentStored) return;
    await this.api.json('POST', this.path('consent'), { text });
    this.consentStored = true;
    this.memory.write({ consent: text });
  }

  /** The first answer is seen from its first word on, unless the stream takes too long to come. */
  private connected(): Promise<void> {
    return new Promise((resolve) => {
      this.onConnected = resolve;
      setTimeout(resolve, CONNECTED_MS);
    });
  }

  private resumeSending(): void {
    if (this.pending.length) void this.flush();
  }

  private async flush(): Promise<void> {
    if (this.flushing) return;
    this.flushing = true;
    try {
      for (let next = this.nextPending(); next; next = this.nextPending()) await this.deliver(next);
    } catch {
      this.link = 'offline'; // `online`, or the stream's return, tries again.
    } finally {
      this.flushing = false;
      this.changed();
    }
  }

  private nextPending(): Pending | undefined {
    return this.needsConsent ? undefined : this.pending.find((one) => !one.failed);
  }

  private async deliver({ failed: _, ...sent }: Pending): Promise<void> {
    try {
      await this.ensureChat();
      const accepted = await this.api.json<{ message: Message; chat: Chat }>('POST', this.path('messages'), sent);
      this.setPending(this.pending.filter((one) => one.client_id !== sent.client_id));
      this.take(accepted.chat);
      this.add([accepted.message]);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status === 0 || problem.status >= 500) throw problem;
      this.fault = FAULTS[problem.status] ?? 'failed_action';
      const marked = { ...sent, failed: true };
      this.setPending(this.pending.map((one) => (one.client_id === sent.client_id ? marked : one)));
    }
  }

  private setPending(pending: readonly Pending[]): void {
    this.pending = pending;
    this.memory.write({ pending });
    this.changed();
  }

  private async act(action: string, body: object = {}): Promise<void> {
    this.changed();
    await this.attempt(() => this.api.json('POST', this.path(action), body));
  }

  private async attempt(work: () => Promise<unknown>): Promise<void> {
    this.fault = null;
    try {
      await work();
    } catch (problem) {
      this.fault = FAULTS[problem instanceof Problem ? problem.status : 0] ?? 'failed_action';
    }
    this.changed();
  }

  private path(rest: string): string {
    return `/chats/${this.chat!.chat_id}/${rest}`;
  }

  private take(chat: Chat): void {
    if (this.chat && (chat.chat_id !== this.chat.chat_id || chat.version < this.chat.version)) return;
    if (chat.owner !== 'bot') this.live = null; // Whatever the assistant was saying, a person has the chat now.
    this.chat = chat;
  }

  /** A message counts once, however often and in whichever order it comes. */
  private add(messages: readonly Message[]): void {
    const known = new Map(this.messages.map((one) => [one.seq, one]));
    const fresh = messages.filter((one) => !known.has(one.seq) && one.kind !== 'note');
    for (const one of fresh) known.set(one.seq, one);
    this.messages = [...known.values()].sort((one, other) => one.seq - other.seq);
    const sent = new Set(this.messages.map((one) => one.client_id));
    if (this.pending.some((one) => sent.has(one.client_id))) {
      this.setPending(this.pending.filter((one) => !sent.has(one.client_id)));
    }
    if (fresh.some((one) => one.author === 'bot' && (!this.live?.turnId || one.turn_id === this.live.turnId))) this.live = null;
    if (fresh.some((one) => one.author === 'operator')) this.typing = '';
    this.markSeen();
  }

  private receive({ name, data }: StreamEvent): void {
    const turn = TURN_EVENTS[name];
    if (turn) {
      this.follow(turn, data);
    } else if (name === 'snapshot' || name === 'news') {
      this.take(data['chat'] as Chat);
      if (name === 'snapshot' && this.live) this.live = { ...this.live, whole: false };
      this.add(data['messages'] as Message[]);
      if (!this.awaitsAnswer()) this.live = null;
    } else if (name === 'message') {
      const message = data as unknown as Message;
      if (message.author === 'customer' || message.body.event === 'asked_again') this.stopped = false;
      this.add([message]);
      this.speak(message);
    } else if (name === 'state') {
      this.take(data as unknown as Chat);
    } else if (name === 'typing') {
      if (data['who'] !== 'customer') this.showTyping(data['active'] ? String(data['name'] || this.texts.say('staff')) : '');
    } else if (name === 'presence') {
      const { who, name: person, active } = data;
      if (who !== 'customer') this.looking = active ? String(person || this.texts.say('staff')) : '';
    } else if (name === 'error') {
      this.live = null;
      this.stopped = true;
      this.fault = 'failed_action';
    } else if (name === 'gone') {
      this.startOver();
    }
    this.changed();
  }

  private awaitsAnswer(): boolean {
    const decides = (one: Message): boolean => one.kind !== 'event' || TURN_LINES.has(one.body.event ?? '');
    const last = this.messages.findLast(decides);
    return last?.author === 'customer' || last?.body.event === 'asked_again';
  }

  private follow(change: (live: Live, data: Record<string, unknown>) => Live, data: Record<string, unknown>): void {
    const turnId = String(data['turn_id'] ?? '');
    if (this.stopped || !this.botOwns || this.messages.some((one) => one.author === 'bot' && one.turn_id === turnId)) return;
    const known = this.live?.turnId === turnId ? this.live : { ...EMPTY, turnId };
    this.live = change(known, data);
  }

  private showTyping(name: string): void {
    this.typing = name;
    clearTimeout(this.typingTimer);
    if (!name) return;
    this.typingTimer = setTimeout(() => {
      this.typing = '';
      this.changed();
    }, TYPING_SHOWN_MS);
  }

  private speak(message: Message): void {
    if (message.author === 'customer') return;
    const name = message.author === 'bot' ? this.texts.say('bot') : message.name || this.texts.say('staff');
    const notice = message.body.turn?.answer.notice ?? '';
    const words = message.kind === 'event' ? eventText(message, this.texts) : `${name}: ${notice} ${message.text}`;
    this.spoken = words.replace(/\[\d+\]/g, '').replace(/[*_`#]+/g, '');
  }
}

/** A line about what happened; empty for events that customers need not know of. */
export function eventText(message: Message, texts: Texts): string {
  const event = message.body.event ?? '';
  const key = `event_${event}`;
  const name = message.name || texts.say('staff');
  return key in EVENT_KEYS ? texts.say(key as Key, { name }) : '';
}

const TURN_LINES = new Set(['stopped', 'asked_again']);
const EVENT_KEYS: Readonly<Record<string, true>> = {
  event_queued: true,
  event_stopped: true,
  event_joined: true,
  event_left: true,
  event_handed_back: true,
  event_resolved: true,
  event_reopened: true,
  event_snoozed: true,
  event_queue_timed_out: true,
};

const EMPTY: Live = { turnId: '', text: '', notice: '', checking: false, citations: [], correction: null, whole: false };

const TURN_EVENTS: Readonly<Record<string, (live: Live, data: Record<string, unknown>) => Live>> = {
  accepted: (live) => ({ ...EMPTY, turnId: live.turnId, whole: true }),
  stage: (live, data) => ({ ...live, checking: String(data['node']).startsWith('verify') }),
  'sources-early': (live, data) => ({ ...live, citations: data['citations'] as Citation[] }),
  notice: (live, data) => ({ ...live, notice: String(data['text']) }),
  token: (live, data) => ({ ...live, text: live.text + String(data['text']) }),
  revise: (live, data) => ({ ...live, text: String(data['text']), correction: 'revised', whole: true }),
  retract: (live, data) =>
    data['what'] === 'sources' ? { ...live, citations: [] } : { ...live, text: '', correction: data['notice'] ? 'retracted' : null },
  claim: (live) => live,
  verdict: (live) => live,
  suggestions: (live) => live,
  result: (live) => live,
};
