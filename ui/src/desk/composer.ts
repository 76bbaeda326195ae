/** Reply editor: the text is kept until it is stored, even if the page changes around it. */

import { type Live, post } from './live';
import { parsed } from './merge';

const TYPING_EVERY_MS = 3_000;
const NEAR_END_PX = 80;

export class Composer {
  private readonly form = document.getElementById('composer') as HTMLFormElement;
  private readonly text = document.getElementById('text') as HTMLTextAreaElement;
  private readonly thread = document.getElementById('thread')!;
  private readonly fault = document.getElementById('fault')!;
  private readonly draft: string;
  private typedAt = 0;
  private atEnd = true;
  private sending = false;

  constructor(
    private readonly chat: string,
    private readonly live: Live,
  ) {
    this.draft = `opora-desk:${chat}`;
  }

  start(): void {
    this.renew();
    if (!this.text.value) this.text.value = this.stored() ?? '';
    this.thread.scrollTop = this.thread.scrollHeight;
    this.live.changing = () => {
      this.atEnd = this.thread.scrollHeight - this.thread.scrollTop - this.thread.clientHeight < NEAR_END_PX;
    };
    this.live.changed = (regions, fresh) => this.follow(regions, fresh);
    void this.fetchLater();
    this.text.addEventListener('input', () => this.typed());
    this.text.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.form.requestSubmit(this.form.querySelector<HTMLButtonElement>('[data-as="reply"]')!);
      }
    });
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      const button = event.submitter as HTMLButtonElement | null;
      void this.send(button?.dataset['as'] === 'note' ? `/desk/chat/${this.chat}/note` : `/desk/chat/${this.chat}/reply`);
    });
    document.addEventListener('submit', (event) => {
      const act = event.target as HTMLFormElement;
      if (act.dataset['act'] === undefined) return;
      event.preventDefault();
      void this.act(act, event.submitter as HTMLButtonElement | null);
    });
    document.addEventListener('click', ({ target }) => {
      const button = target instanceof Element ? target.closest<HTMLElement>('[data-insert]') : null;
      if (!button) return;
      this.insert(button.dataset['insert']!, button);
      if (button.dataset['suggestion']) this.from(button.dataset['suggestion']);
    });
    void this.seen();
  }

  /** Run the action of a button; it is disabled meanwhile, so that one click sends one request. */
  private async act(form: HTMLFormElement, button: HTMLButtonElement | null): Promise<void> {
    if (button?.getAttribute('aria-busy') === 'true') return;
    button?.setAttribute('aria-busy', 'true');
    await this.submit(form.action, new URLSearchParams(new FormData(form) as unknown as Record<string, string>));
    button?.removeAttribute('aria-busy');
  }

  private async send(path: string): Promise<void> {
    if (this.sending || !this.text.value.trim()) return;
    this.sending = true;
    const written = this.text.value;
    try {
      const done = await this.submit(path, new URLSearchParams(new FormData(this.form) as unknown as Record<string, string>));
      if (done && this.text.value === written) {
        this.text.value = '';
        this.from('');
        this.keep('');
        this.renew();
      }
    } finally {
      this.sending = false;
    }
  }

  /** Return whether the action succeeded; if not, the page shows the reason and the changes. */
  private async submit(path: string, body: URLSearchParams): Promise<boolean> {
    try {
      const response = await post(path, body);
      if (response.redirected && !response.url.includes(`/desk/chat/${this.chat}`)) {
        location.reload();
        return false;
      }
      const fresh = parsed(await response.text());
      this.live.adopt(fresh);
      this.show(fresh.getElementById('fault')?.textContent ?? fresh.querySelector('h1')?.textContent ?? '');
      return response.ok;
    } catch {
      this.show(document.getElementById('link')!.dataset['offline']!);
      return false;
    }
  }

  private show(words: string): void {
    this.fault.textContent = words;
    this.fault.hidden = !words;
  }

  /** After an update: keep the end of the thread visible if it was, and record how far it has been read. */
  private follow(regions: ReadonlySet<string>, fresh: Document): void {
    const seen = fresh.querySelector<HTMLInputElement>('#composer [name="seen"]');
    if (seen) this.form.querySelector<HTMLInputElement>('[name="seen"]')!.value = seen.value;
    if (!regions.has('messages')) return;
    if (this.atEnd) this.thread.scrollTop = this.thread.scrollHeight;
    document.getElementById('typing')!.textContent = '';
    void this.seen();
  }

  private async seen(): Promise<void> {
    if (document.visibilityState !== 'visible') return;
    const seq = Number(this.form.querySelector<HTMLInputElement>('[name="seen"]')!.value);
    await this.json('seen', { seq });
  }

  private typed(): void {
    this.keep(this.text.value);
    if (!this.text.value) this.from('');
    if (Date.now() - this.typedAt < TYPING_EVERY_MS) return;
    this.typedAt = Date.now();
    void this.json('typing', { active: true, name: document.querySelector<HTMLElement>('[data-me]')!.dataset['me'] });
  }

  private insert(text: string, button: HTMLElement): void {
    this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, 'end');
    button.closest('details')?.removeAttribute('open');
    this.text.focus();
    this.keep(this.text.value);
  }

  /** Load linked content inline. If loading fails, the link stays. */
  private async fetchLater(): Promise<void> {
    for (const place of document.querySelectorAll<HTMLElement>('[data-later]')) {
      const response = await fetch(place.dataset['later']!, { headers: { accept: 'text/html' } }).catch(() => null);
      const part = response?.ok ? parsed(await response.text()).getElementById('later') : null;
      if (!part) continue;
      for (const one of part.querySelectorAll<HTMLElement>('[data-needs-script]')) one.hidden = false;
      place.replaceChildren(...document.importNode(part, true).childNodes);
    }
  }

  private async json(act: string, body: object): Promise<void> {
    const token = document.querySelector<HTMLMetaElement>('meta[name="csrf"]')!.content;
    const headers = { 'content-type': 'application/json', 'x-csrf-token': token };
    await fetch(`/desk/chats/${this.chat}/${act}`, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => undefined);
  }

  /** Id of the next message, so that sending it twice stores it once. */
  private renew(): void {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    this.form.querySelector<HTMLInputElement>('[name="client_id"]')!.value = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  }

  /** Message id of the suggestion that the text started from; empty for the operator's own text. */
  private from(suggestion: string): void {
    this.form.querySelector<HTMLInputElement>('[name="suggestion"]')!.value = suggestion;
  }

  private stored(): string | null {
    try {
      return sessionStorage.getItem(this.draft);
    } catch {
      return null;
    }
  }

  private keep(text: string): void {
    try {
      if (text) sessionStorage.setItem(this.draft, text);
      else sessionStorage.removeItem(this.draft);
    } catch {
      // Without storage, the text stays on the page only.
    }
  }
}
