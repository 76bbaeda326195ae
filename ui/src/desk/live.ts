/**
 * Live events of the tenant's chats. One tab of the browser holds the stream and informs the others, because a browser
 * opens at most six connections to a host under HTTP/1.1.
 */

import { Alerts } from './alerts';
import { merge, parsed } from './merge';
import { follow } from './stream';

interface News {
  readonly kind: string;
  readonly chat_id?: string;
  readonly who?: string;
  readonly subject?: string;
  readonly name?: string;
  readonly active?: boolean;
  /** Who is present in a chat, for a tab that has just been opened. */
  readonly people?: readonly (readonly [string, string])[];
}

const KINDS = ['ready', 'changed', 'typing', 'presence', 'roll_call', 'ended'];
/** Pause between two loads, and its random part, so that tabs do not all load at the same moment. */
const BETWEEN_LOADS_MS = 1_200;
const SPREAD_MS = 600;
const TYPING_MS = 8_000;
const LOOKING_EVERY_MS = 15_000;

export class Live {
  /** Called before each reload is merged. */
  changing: () => void = () => undefined;
  /** Called after the merge, with the changed regions. */
  changed: (regions: ReadonlySet<string>, fresh: Document) => void = () => undefined;
  private readonly alerts = new Alerts();
  private readonly channel = new BroadcastChannel('opora-desk');
  /** Other operators by chat and subject. */
  private readonly lookers = new Map<string, Map<string, string>>();
  private readonly tab = Math.random().toString(16).slice(2, 14);
  private leads = false;
  private loading = false;
  private again = false;
  private typing = 0;
  /** Version of the page that was merged last; empty if unknown. */
  private version = '';

  constructor(private readonly chat: string) {}

  start(): void {
    this.alerts.start();
    this.channel.onmessage = ({ data }) => this.take(data as News);
    if ('locks' in navigator) void navigator.locks.request('opora-desk', () => this.lead());
    else void this.lead();
    if (this.chat) {
      this.channel.postMessage({ kind: 'hello', chat_id: this.chat });
      void this.look({ arriving: 'true' });
      setInterval(() => void this.look(), LOOKING_EVERY_MS);
      addEventListener('pagehide', () => void this.look({ active: 'false' }));
    }
    addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') void this.load();
    });
  }

  /** Reload the page and merge the changes; a change during the reload triggers another one. */
  async load(): Promise<void> {
    this.again = true;
    if (this.loading) return;
    this.loading = true;
    try {
      while (this.again) {
        this.again = false;
        const response = await fetch(location.href, { headers: { accept: 'text/html', 'if-none-match': this.version } });
        if (response.redirected) location.reload();
        else if (response.ok) {
          this.adopt(parsed(await response.text()));
          this.version = response.headers.get('etag') ?? '';
        }
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_LOADS_MS + Math.random() * SPREAD_MS));
      }
    } catch {
      this.show(false);
    } finally {
      this.loading = false;
    }
  }

  adopt(fresh: Document): void {
    this.version = '';
    this.changing();
    const regions = merge(fresh);
    this.changed(regions, fresh);
    const last = [...document.querySelectorAll('.message')].at(-1);
    this.alerts.changed(this.leads, regions.has('messages') && last?.matches('.customer') === true);
  }

  private lead(): Promise<void> {
    this.leads = true;
    follow('/desk/live', (stream) => {
      stream.addEventListener('open', () => this.show(true));
      stream.addEventListener('error', () => this.show(false));
      for (const kind of KINDS) {
        stream.addEventListener(kind, ({ data }) => {
          const news = { kind, ...(JSON.parse(data as string) as object) } as News;
          this.channel.postMessage(news);
          this.take(news);
        });
      }
    });
    return new Promise(() => undefined);
  }

  private take(news: News): void {
    const { kind, chat_id: chat = '' } = news;
    if (kind === 'ended') location.reload();
    else if (kind === 'ready' || kind === 'changed') {
      this.show(true);
      // A hidden tab catches up when it becomes visible. The leading tab plays the alerts.
      if (this.leads || document.visibilityState === 'visible') void this.load();
      // A new stream starts without presence data.
      if (kind === 'ready' && this.chat) void this.look({ arriving: 'true' });
    } else if (kind === 'hello' && this.leads) {
      this.channel.postMessage({ kind: 'known', chat_id: chat, people: [...(this.lookers.get(chat) ?? [])] });
    } else if (kind === 'known' && chat === this.chat) {
      this.lookers.set(chat, new Map(news.people));
      this.showLookers();
    } else if (kind === 'roll_call' && chat === this.chat) void this.look();
    else if (kind === 'presence' && news.who === 'operator') {
      const people = this.lookers.get(chat) ?? new Map<string, string>();
      if (news.active) people.set(news.subject!, news.name!);
      else people.delete(news.subject!);
      this.lookers.set(chat, people);
      this.showLookers();
    } else if (kind === 'typing' && news.who === 'customer' && chat === this.chat) this.showTyping(news.active === true);
  }

  private async look(more: Readonly<Record<string, string>> = {}): Promise<void> {
    await post(`/desk/chat/${this.chat}/looking`, new URLSearchParams({ tab: this.tab, ...more }), true).catch(() => undefined);
  }

  private showLookers(): void {
    const place = document.getElementById('presence');
    if (!place) return;
    const names = [...(this.lookers.get(this.chat)?.values() ?? [])];
    const list = new Intl.ListFormat(document.documentElement.lang).format(names);
    const words = names.length ? place.dataset[names.length > 1 ? 'many' : 'one']!.replace('{names}', list) : '';
    if (place.textContent !== words) place.textContent = words;
  }

  private showTyping(active: boolean): void {
    const place = document.getElementById('typing')!;
    clearTimeout(this.typing);
    place.textContent = active ? place.dataset['text']! : '';
    if (active) this.typing = setTimeout(() => (place.textContent = ''), TYPING_MS);
  }

  private show(online: boolean): void {
    const place = document.getElementById('link');
    if (!place) return;
    const words = place.dataset[online ? 'online' : 'offline']!;
    place.classList.toggle('offline', !online);
    if (place.textContent !== words) place.textContent = words;
  }
}

/** Submit a form with this page's session. */
export function post(path: string, body: URLSearchParams, keepalive = false): Promise<Response> {
  const token = document.querySelector<HTMLMetaElement>('meta[name="csrf"]')!.content;
  return fetch(path, { method: 'POST', body, keepalive, headers: { 'x-csrf-token': token, accept: 'text/html' } });
}
