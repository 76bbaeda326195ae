/** State of a conversation in this browser, and the customer's actions. */

import { Api, Problem } from './api';
import { Attaching } from './attachment';
import { Connection, type Link } from './connection';
import type { Chat, Config, FileInfo, Message, Site, StreamEvent } from './contract';
import { awaitsAnswer, canReturnTo, merged, spokenText, visible } from './history';
import { after, isTurnEvent, type Live } from './live';
import { Outbox, UNKNOWN_WAIT_SECONDS } from './outbox';
import { Presence } from './presence';
import { Memory, type Pending, uuid } from './storage';
import type { Key, Texts } from './texts';

const CONNECTED_MS = 1_500;
const FAULTS: Readonly<Record<number, Key>> = { 429: 'rate_limited' };
const REFUSALS: Readonly<Record<number, Key>> = { 403: 'forbidden', 404: 'forbidden', 429: 'busy' };

export class Conversation {
  site: Site | null = null;
  chat: Chat | null = null;
  messages: readonly Message[] = [];
  live: Live | null = null;
  link: Link = 'connecting';
  stopped = false;
  /** Whether the customer may branch the chat and see what answers cost. */
  tools = false;
  consented = false;
  /** The service has stored the consent: do not ask again. */
  consentStored = false;
  /** Reason why no chat is available. */
  refusal: Key | null = null;
  fault: Key | null = null;
  /** Seconds to wait, if the rate limit is the reason. */
  faultSeconds = 0;
  /** Next announcement for screen readers. */
  spoken = '';
  open = false;
  readonly votes = new Map<string, 'up' | 'down'>();
  readonly outbox: Outbox;
  readonly attaching: Attaching;
  readonly presence: Presence;

  private readonly memory: Memory;
  private readonly api: Api;
  private connection: Connection | null = null;
  private starting: Promise<void> | null = null;
  private seen = 0;
  private onConnected: () => void = () => undefined;

  constructor(
    config: Config,
    readonly texts: Texts,
    private readonly changed: () => void,
  ) {
    this.memory = new Memory(config.site);
    this.api = new Api(config, this.memory, (session, customerChanged) => {
      this.site = session.site;
      config.locale ||= session.site.locale;
      if (customerChanged) this.consented = this.consentStored = false;
      this.outbox.keep();
      this.tools = config.page && session.tools;
    });
    this.outbox = new Outbox(this.memory, {
      ready: () => !this.needsConsent,
      deliver: (message) => this.deliver(message),
      refused: (problem) => this.refused(problem),
      unreachable: () => {
        this.link = 'offline';
      },
      changed,
    });
    this.attaching = new Attaching(texts, (...upload) => this.upload(...upload), changed);
    const told = (active: boolean): void => void this.api.json('POST', this.path('typing'), { active }).catch(() => undefined);
    this.presence = new Presence(told, changed);
    addEventListener('online', () => void this.outbox.send());
    document.addEventListener('visibilitychange', () => this.markSeen());
  }

  /** Start, or start again after an error. */
  start(): Promise<void> {
    this.starting ??= this.begin().catch((problem: unknown) => {
      this.starting = null;
      const { status, code, retryAfter } = problem instanceof Problem ? problem : { status: 0, code: '', retryAfter: 0 };
      this.refusal = code === 'identity_required' ? 'identity' : code === 'origin_forbidden' ? 'origin' : REFUSALS[status] ?? 'unavailable';
      if (status === 429) {
        this.faultSeconds = retryAfter || UNKNOWN_WAIT_SECONDS;
        setTimeout(() => void this.start(), this.faultSeconds * 1_000);
      }
      this.changed();
    });
    return this.starting;
  }

  get pending(): readonly Pending[] {
    return this.outbox.pending;
  }

  get shown(): readonly Message[] {
    return visible(this.messages);
  }

  get unread(): number {
    if (this.open || !this.chat) return 0;
    const seen = Math.max(this.chat.customer_seen, this.seen);
    return this.messages.filter((one) => one.seq > seen && (one.author === 'bot' || one.author === 'operator')).length;
  }

  /** Whether an answer of the assistant is due or in progress. */
  get awaiting(): boolean {
    if (this.live) return true;
    const sending = !this.outbox.waiting && this.pending.some((one) => !one.failed);
    return this.botOwns && !this.stopped && (sending || awaitsAnswer(this.messages));
  }

  /** Whether the answer is delayed by the rate limit. */
  get delayed(): boolean {
    const said = this.messages.findLast((one) => one.author === 'bot' || one.body.event === 'delayed');
    return !this.live && (this.link === 'limited' || said?.body.event === 'delayed');
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

  /** Whether a message can be edited, or its answer written anew. */
  canReturnTo(message: Message): boolean {
    const free = this.botOwns && this.chat?.state === 'bot' && !this.pending.length;
    return free && canReturnTo(this.messages, message.seq);
  }

  agree(agreed: boolean): void {
    this.consented = agreed;
    this.changed();
  }

  send(text: string): void {
    const file = this.attaching.current?.info;
    const words = text.trim();
    if ((!words && !file) || this.needsConsent) return;
    this.attaching.detach();
    this.stopped = false;
    this.fault = null;
    this.outbox.add({ text: words, ...(file ? { file } : {}) });
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

  /** Continue in another chat, which keeps this one up to an answer. */
  async branch(message: Message): Promise<void> {
    await this.attempt(async () => {
      this.move(await this.api.json<Chat>('POST', this.path('branch'), { message_id: message.message_id }));
    });
  }

  /** Open another chat of this customer. */
  async visit(chatId: string): Promise<void> {
    await this.attempt(async () => {
      this.move((await this.api.json<{ chat: Chat }>('GET', `/chats/${chatId}`)).chat);
    });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.live = null;
    this.spoken = this.texts.say('event_stopped');
    await this.act('stop');
  }

  async person(): Promise<void> {
    if (this.refuseWithoutConsent()) return;
    await this.attempt(async () => {
      await this.ensureChat();
      this.take(await this.api.json<Chat>('POST', this.path('person'), {}));
    });
  }

  async leaveContact(contact: string): Promise<void> {
    if (this.refuseWithoutConsent()) return;
    await this.attempt(async () => {
      await this.ensureChat();
      try {
        this.take(await this.api.json<Chat>('POST', this.path('contact'), { contact }));
        this.fault = null;
      } catch (problem) {
        if (!(problem instanceof Problem) || problem.status !== 422) throw problem;
        this.fault = 'contact_invalid';
      }
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

  /** Attach the first of these files, if files are allowed and the customer has given the site's consent. */
  attach(files: Iterable<File>): void {
    const [file, ...more] = files;
    const limit = this.site?.limits.file_bytes ?? 0;
    if (!file || !limit || this.refuseWithoutConsent()) return;
    this.fault = more.length ? 'one_file' : null;
    void this.attaching.attach(file, limit);
  }

  file(fileId: string): Promise<Blob> {
    return this.api.request('GET', this.path(`files/${encodeURIComponent(fileId)}`)).then((response) => response.blob());
  }

  transcript(): Promise<Blob> {
    return this.api.request('GET', this.path('transcript')).then((response) => response.blob());
  }

  /** Report that the customer is typing, which only operators see. */
  typed(active: boolean): void {
    if (this.chat && !this.botOwns) this.presence.typed(active);
  }

  markSeen(): void {
    const last = this.messages.at(-1)?.seq ?? 0;
    if (!this.open || !this.chat || document.visibilityState !== 'visible') return;
    if (last <= Math.max(this.seen, this.chat.customer_seen)) return;
    this.seen = last;
    void this.api.json('POST', this.path('seen'), { seq: last }).catch(() => undefined);
  }

  /** Tell the customer that something went wrong. */
  fail(problem?: Problem): void {
    this.fault = problem?.code === 'chats_full' ? 'chats_full' : FAULTS[problem?.status ?? 0] ?? 'failed_action';
    this.faultSeconds = problem?.retryAfter || UNKNOWN_WAIT_SECONDS;
    this.changed();
  }

  refuseWithoutConsent(): boolean {
    if (!this.needsConsent) return false;
    this.fault = 'consent_needed';
    this.changed();
    return true;
  }

  private async begin(): Promise<void> {
    const { site } = await this.api.start();
    this.refusal = null;
    this.outbox.restore();
    this.consentStored = !site.consent || this.memory.read().consent === site.consent.text;
    this.consented ||= this.consentStored;
    const chats = await this.api.json<Chat[]>('GET', '/chats');
    const kept = this.memory.read().chat;
    const latest = chats.find((one) => one.chat_id === kept) ?? chats[0];
    if (latest) this.enter(latest);
    else this.link = 'online';
    this.changed();
    void this.outbox.send();
  }

  private enter(chat: Chat): void {
    this.chat = chat;
    this.memory.write({ chat: chat.chat_id });
    this.link = 'connecting';
    this.connection = new Connection(this.api, chat.chat_id, {
      event: (event) => this.receive(event),
      link: (link) => {
        this.link = link;
        if (link === 'online') {
          this.onConnected();
          if (this.pending.length) void this.outbox.send();
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

  /** The chat no longer exists: its visitor was erased or replaced in this browser. The next message starts another. */
  private leave(): void {
    this.connection?.stop();
    this.connection = null;
    this.chat = null;
    this.messages = [];
    this.live = null;
    this.seen = 0;
    this.memory.write({ chat: undefined });
  }

  private move(chat: Chat): void {
    this.leave();
    this.stopped = false;
    this.enter(chat);
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

  /** Show the first answer from its first word, unless the stream takes too long to connect. */
  private connected(): Promise<void> {
    return new Promise((resolve) => {
      this.onConnected = resolve;
      setTimeout(resolve, CONNECTED_MS);
    });
  }

  private async deliver({ client_id, text, file }: Pending): Promise<void> {
    await this.ensureChat();
    const sent = { client_id, text, ...(file ? { file_id: file.file_id } : {}) };
    const accepted = await this.api.json<{ message: Message; chat: Chat }>('POST', this.path('messages'), sent);
    if (this.fault === 'rate_limited' || this.fault === 'chats_full') this.fault = null;
    this.take(accepted.chat);
    this.add([accepted.message]);
  }

  private async refused(problem: Problem): Promise<void> {
    if (!['consent_withdrawn', 'consent_missing'].includes(problem.code)) return this.fail(problem);
    // The site may ask for consent only since the session began.
    if (problem.code === 'consent_missing') await this.api.start().catch(() => undefined);
    this.consented = this.consentStored = false;
    this.memory.write({ consent: '' });
    if (!this.refuseWithoutConsent()) this.fail(problem);
  }

  private async upload(file: File, signal: AbortSignal, progress: (percent: number) => void): Promise<FileInfo> {
    await this.ensureChat();
    return this.api.upload(this.path('files'), file, signal, progress);
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
      if (problem instanceof Problem) await this.refused(problem);
      else this.fail();
    }
    this.changed();
  }

  private path(rest: string): string {
    return `/chats/${this.chat!.chat_id}/${rest}`;
  }

  private take(chat: Chat): void {
    if (this.chat && (chat.chat_id !== this.chat.chat_id || chat.version < this.chat.version)) return;
    if (chat.owner !== 'bot') this.live = null; // An operator has taken the chat: drop the unfinished answer.
    this.chat = chat;
  }

  private add(messages: readonly Message[]): void {
    const known = new Set(this.messages.map((one) => one.seq));
    this.messages = merged(this.messages, messages);
    const fresh = this.messages.filter((one) => !known.has(one.seq));
    this.outbox.settle(new Set(this.messages.map((one) => one.client_id)));
    if (fresh.some((one) => one.author === 'bot' && (!this.live?.turnId || one.turn_id === this.live.turnId))) this.live = null;
    if (fresh.some((one) => one.author === 'operator')) this.presence.receive('typing', '');
    this.markSeen();
  }

  private receive({ name, data }: StreamEvent): void {
    if (isTurnEvent(name)) {
      this.follow(name, data);
    } else if (name === 'snapshot' || name === 'news') {
      this.take(data['chat'] as Chat);
      if (name === 'snapshot' && this.live) this.live = { ...this.live, whole: false };
      this.add(data['messages'] as Message[]);
      if (!awaitsAnswer(this.messages)) this.live = null;
    } else if (name === 'message') {
      const message = data as unknown as Message;
      if (message.author === 'customer' || message.body.event === 'asked_again') this.stopped = false;
      this.add([message]);
      this.spoken = spokenText(message, this.texts) || this.spoken;
    } else if (name === 'state') {
      this.take(data as unknown as Chat);
    } else if (name === 'typing' || name === 'presence') {
      const { who, name: person, active } = data;
      if (who !== 'customer') this.presence.receive(name, active ? String(person || this.texts.say('staff')) : '');
    } else if (name === 'error') {
      this.live = null;
      this.stopped = true;
      this.fail();
    } else if (name === 'gone') {
      this.leave();
    }
    this.changed();
  }

  private follow(name: string, data: Record<string, unknown>): void {
    const isStored = this.messages.some((one) => one.author === 'bot' && one.turn_id === data['turn_id']);
    if (!this.stopped && this.botOwns && !isStored) this.live = after(this.live, name, data);
  }
}
