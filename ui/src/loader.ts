/**
 * Adds `<opora-chat>` to a page: the button in the corner, and the chat on demand.
 *
 * Styles of the host page may interfere, so everything is in a shadow root, and the styles of the element itself are
 * `!important` in there, which no rule of the page can override.
 */
import sheetText from './loader.css';
import type { Config, Host, Mounted } from './contract';

declare const CHAT_VERSION: string;

const LABELS: Record<string, readonly [string, string]> = {
  ru: ['Открыть чат с поддержкой', 'Непрочитанных сообщений: '],
  en: ['Open the support chat', 'Unread messages: '],
};
const script = document.currentScript as HTMLScriptElement | null;
const data: DOMStringMap = script?.dataset ?? {};
const SVG = 'http://www.w3.org/2000/svg';
const BUBBLE = 'M12 3C6.8 3 3 6.6 3 11c0 2.300 1 4.300 2.700 5.700L5 21l4.400-2.200c.8.150 1.700.2 2.600.2 5.200 0 9-3.600 9-8s-3.800-8-9-8Z';

function stored(site: string): boolean {
  try {
    return (localStorage.getItem(`opora:${site}`) ?? '').includes('"chat":"');
  } catch {
    return false; // Frames without storage: a chat lasts as long as its page.
  }
}

class OporaChat extends HTMLElement {
  private chat: Promise<Mounted> | undefined;
  private readonly button = document.createElement('button');
  private readonly badge = document.createElement('span');

  connectedCallback(): void {
    if (this.shadowRoot) return;
    const root = this.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(sheetText);
    root.adoptedStyleSheets = [sheet];
    if (this.config.page) {
      this.open();
      return;
    }
    const icon = document.createElementNS(SVG, 'svg');
    const path = document.createElementNS(SVG, 'path');
    icon.setAttribute('viewBox', '0 0 24 24');
    icon.setAttribute('aria-hidden', 'true');
    path.setAttribute('d', BUBBLE);
    icon.append(path);
    this.button.className = 'launcher';
    this.button.type = 'button';
    this.button.setAttribute('aria-haspopup', 'dialog');
    this.button.setAttribute('aria-expanded', 'false');
    this.badge.className = 'badge';
    this.badge.hidden = true;
    this.button.append(icon, this.badge);
    this.button.addEventListener('click', () => this.open());
    this.button.addEventListener('pointerenter', () => void this.load(), { once: true });
    root.append(this.button);
    this.label(0);
    if (stored(this.config.site)) void this.load().then((chat) => chat.resume());
  }

  get config(): Config {
    const asked = [this.dataset['locale'] ?? '', document.documentElement.lang, ...navigator.languages];
    return {
      base: this.dataset['base'] ?? '',
      site: this.dataset['site'] ?? '',
      locale: asked.map((tag) => tag.slice(0, 2).toLowerCase()).find((language) => language in LABELS) ?? '',
      identity: this.dataset['identity'] || null,
      page: this.dataset['mode'] === 'page',
    };
  }

  open(): void {
    void this.load().then((chat) => chat.open());
  }

  close(): void {
    void this.chat?.then((chat) => chat.close());
  }

  private load(): Promise<Mounted> {
    this.chat ??= this.start().catch((fault: unknown) => {
      this.chat = undefined; // The next click tries again.
      throw fault;
    });
    return this.chat;
  }

  private async start(): Promise<Mounted> {
    const { mount } = (await import(`${this.config.base}/widget/chat.js?v=${CHAT_VERSION}`)) as {
      mount: (host: Host) => Mounted;
    };
    return mount({
      root: this.shadowRoot!,
      config: this.config,
      opened: (open) => {
        this.button.hidden = open;
        this.button.setAttribute('aria-expanded', String(open));
        if (!open) this.button.focus();
      },
      unread: (count, locale) => this.label(count, locale),
    });
  }

  private label(count: number, locale = this.config.locale): void {
    const [open, unread] = LABELS[locale || 'en']!;
    this.badge.hidden = count === 0;
    this.badge.textContent = count > 9 ? '9+' : String(count);
    this.button.setAttribute('aria-label', count ? `${open}. ${unread}${count}` : open);
  }
}

if (!customElements.get('opora-chat')) customElements.define('opora-chat', OporaChat);
if (script && data['site']) {
  const base = new URL(script.src).origin;
  const place = (): void => {
    const chat = document.createElement('opora-chat');
    Object.assign(chat.dataset, { ...data, base });
    document.body.append(chat);
  };
  if (document.body) place();
  else addEventListener('DOMContentLoaded', place);
}
