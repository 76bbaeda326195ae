/**
 * The events of one chat, shared by all tabs of a browser over one stream.
 *
 * A browser opens at most six connections to a host under HTTP/1.1, so the tab that holds a lock reads the stream and
 * passes it on. Without locks (pages without TLS) each visible tab reads its own stream. If the first event does not
 * arrive within five seconds of the response's head, a proxy is buffering: messages are polled for a while. Some proxies
 * hold back the head, too; but a service at which many streams are being opened also takes seconds to send it.
 */

import { EventSourceParserStream } from 'eventsource-parser/stream';
import { type Api, Problem } from './api';
import type { Chat, Message, StreamEvent } from './contract';
import { UNKNOWN_WAIT_SECONDS } from './outbox';

/** `limited`: the rate limit requires a wait before the next read. */
export type Link = 'connecting' | 'online' | 'offline' | 'limited';

/** Longest wait for the head of a response, and for the first event after it. */
const HEAD_MS = 12_000;
const SNAPSHOT_MS = 5_000;
const SILENCE_MS = 45_000;
const POLL_MS = 2_000;
const POLLS = 30;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

interface Handlers {
  event(event: StreamEvent): void;
  link(link: Link): void;
  /** Number of the newest message. */
  last(): number;
  /** State for a tab that opens in the middle of an answer. */
  live(): unknown;
  adopt(live: unknown): void;
}

export class Connection {
  private readonly ended = new AbortController();
  private readonly channel: BroadcastChannel;
  private leads = false;

  constructor(
    private readonly api: Api,
    private readonly chatId: string,
    private readonly handlers: Handlers,
  ) {
    this.channel = new BroadcastChannel(`opora:${chatId}`);
    this.channel.onmessage = ({ data }) => this.receive(data as Shared);
  }

  start(): void {
    if ('locks' in navigator) {
      void this.follow();
      const signal = this.ended.signal;
      navigator.locks.request(`opora:stream:${this.chatId}`, { signal }, () => this.lead()).catch(() => undefined);
    } else {
      void this.lead();
    }
  }

  stop(): void {
    this.ended.abort();
    this.channel.close();
  }

  /** Read the stored messages; the leading tab's stream delivers the rest. */
  private async follow(): Promise<void> {
    const again = (): void => {
      if (!this.leads && document.visibilityState === 'visible') void this.poll(this.handlers.last()).catch(() => undefined);
    };
    document.addEventListener('visibilitychange', again, { signal: this.ended.signal });
    await Promise.resolve();
    if (this.leads) return;
    await this.poll(0).catch(() => undefined);
    this.share({ kind: 'hello' });
  }

  private async lead(): Promise<void> {
    this.leads = true;
    const shared = 'locks' in navigator;
    let delay = FIRST_DELAY_MS;
    while (!this.ended.signal.aborted) {
      let wait = 0;
      try {
        if (!shared) await this.visible();
        if (await this.stream(shared)) delay = FIRST_DELAY_MS;
      } catch (problem) {
        if (problem instanceof Problem && (problem.status === 404 || problem.status === 403)) {
          this.pass({ name: 'gone', data: {} });
          return;
        }
        if (problem instanceof Problem && problem.status === 429) wait = problem.retryAfter || UNKNOWN_WAIT_SECONDS;
      }
      // If too many streams are open, each attempt at least reads the messages.
      if (wait) await this.poll(this.handlers.last()).catch(() => undefined);
      if (this.ended.signal.aborted) return;
      if (!shared && document.visibilityState !== 'visible') continue;
      this.linked(wait ? 'limited' : 'offline');
      // Jitter of 25%.
      await this.pause(wait ? wait * 1_334 : delay);
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    }
  }

  /** Read one stream to its end; return whether it delivered any events. */
  private async stream(shared: boolean): Promise<boolean> {
    const given = new AbortController();
    const give = (): void => given.abort();
    const hide = (): void => {
      if (document.visibilityState !== 'visible') give();
    };
    if (!shared) document.addEventListener('visibilitychange', hide, { signal: given.signal });
    this.ended.signal.addEventListener('abort', give, { once: true });
    let buffered = false;
    let begun = false;
    const giveForPolling = (): void => {
      buffered = true;
      give();
    };
    let timer = setTimeout(giveForPolling, HEAD_MS);
    try {
      const path = `/chats/${this.chatId}/events?after=${this.handlers.last()}`;
      const response = await this.api.request('GET', path, { signal: given.signal, accept: 'text/event-stream' });
      clearTimeout(timer);
      timer = setTimeout(giveForPolling, SNAPSHOT_MS);
      const alive = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          if (begun) {
            clearTimeout(timer);
            timer = setTimeout(give, SILENCE_MS);
          }
          controller.enqueue(chunk);
        },
      });
      const events = response
        .body!.pipeThrough(alive)
        .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
        .pipeThrough(new EventSourceParserStream());
      const reader = events.getReader();
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        if (!begun) {
          begun = true;
          clearTimeout(timer);
          timer = setTimeout(give, SILENCE_MS);
          this.linked('online');
        }
        const { event, data } = next.value;
        this.pass({ name: event ?? 'message', data: JSON.parse(data) as Record<string, unknown> });
      }
    } catch (fault) {
      if (!given.signal.aborted) throw fault;
    } finally {
      clearTimeout(timer);
      this.ended.signal.removeEventListener('abort', give);
      give();
    }
    if (buffered) await this.pollForAWhile();
    return begun;
  }

  private async pollForAWhile(): Promise<void> {
    for (let polls = 0; polls < POLLS && !this.ended.signal.aborted; polls += 1) {
      await this.poll(this.handlers.last());
      this.linked('online');
      await this.pause(POLL_MS);
    }
  }

  private async poll(after: number): Promise<void> {
    const data = await this.api.json<{ chat: Chat; messages: Message[] }>('GET', `/chats/${this.chatId}?after=${after}`);
    const event = { name: 'news', data };
    if (this.leads) this.pass(event);
    else this.handlers.event(event);
  }

  private pass(event: StreamEvent): void {
    this.handlers.event(event);
    this.share({ kind: 'event', event });
  }

  private linked(link: Link): void {
    this.handlers.link(link);
    this.share({ kind: 'link', link });
  }

  private share(shared: Shared): void {
    if (!this.ended.signal.aborted) this.channel.postMessage(shared);
  }

  private receive(shared: Shared): void {
    if (this.leads) {
      // Without locks, several tabs lead and each has its own stream: ignore events read by others.
      if (shared.kind !== 'hello') return;
      this.share({ kind: 'live', live: this.handlers.live() });
      this.share({ kind: 'link', link: 'online' });
    } else if (shared.kind === 'event') this.handlers.event(shared.event);
    else if (shared.kind === 'link') this.handlers.link(shared.link);
    else if (shared.kind === 'live') this.handlers.adopt(shared.live);
  }

  /** Wait, or return early when the browser is online again. */
  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        removeEventListener('online', done);
        this.ended.signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms * (0.75 + Math.random() / 2));
      addEventListener('online', done);
      this.ended.signal.addEventListener('abort', done);
    });
  }

  private visible(): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (document.visibilityState !== 'visible') return;
        document.removeEventListener('visibilitychange', look);
        resolve();
      };
      document.addEventListener('visibilitychange', look);
      look();
    });
  }
}

type Shared =
  | { kind: 'event'; event: StreamEvent }
  | { kind: 'link'; link: Link }
  | { kind: 'hello' }
  | { kind: 'live'; live: unknown };
