/** The chat, mounted in the loader's shadow root on demand. */

import { render } from 'lit-html';
import { Cards } from './card';
import sheetText from './chat.css';
import type { Article, Host, Message, Mounted, Turn } from './contract';
import { Conversation } from './conversation';
import { panel, type PanelActions, type PanelState } from './panel';
import { type Passage, passageOf, passageOfArticle, place } from './passage';
import { print } from './print';
import { themed } from './theme';
import { Texts } from './texts';

const FOCUSABLE = 'button:not([disabled]), a[href], input:not([disabled]), textarea, summary, [tabindex="0"]';
const AT_END_PX = 80;

export function mount(host: Host): Mounted {
  const { root, config } = host;
  const texts = new Texts(config);
  const state: PanelState = { draft: '', editing: null, passage: null, card: null, stars: 0, comment: '' };
  const frame = document.createElement('div');
  frame.className = config.page ? 'frame page' : 'frame';
  frame.hidden = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(sheetText);
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  root.append(frame);

  let planned = false;
  let decorated = false;
  let number: HTMLElement | null = null;
  const cards = new Cards(frame, (card) => {
    state.card = card;
    draw();
  });
  const conversation = new Conversation(config, texts, () => {
    if (planned) return;
    planned = true;
    queueMicrotask(() => {
      planned = false;
      draw();
    });
  });

  function draw(): void {
    frame.lang = texts.locale;
    frame.dataset['drop'] = texts.say('drop');
    const log = frame.querySelector('.thread');
    const atEnd = !log || log.scrollHeight - log.scrollTop - log.clientHeight < AT_END_PX;
    render(panel(conversation, state, actions, config.page), frame);
    cards.settle();
    if (conversation.site && !decorated) {
      decorated = true;
      root.adoptedStyleSheets = [...root.adoptedStyleSheets, themed(conversation.site.theme)];
    }
    const after = frame.querySelector('.thread');
    if (after && atEnd) after.scrollTop = restingPlace(after);
    host.unread(conversation.unread, texts.locale);
  }

  /** Scroll to the end of the thread, but not past the beginning of an answer that is taller than the view. */
  function restingPlace(log: Element): number {
    const last = [...log.querySelectorAll('.message')].at(-1);
    if (!last?.matches('.bot') || last.clientHeight < log.clientHeight) return log.scrollHeight;
    return log.scrollTop + last.getBoundingClientRect().top - log.getBoundingClientRect().top - 8;
  }

  function field(): HTMLTextAreaElement | null {
    return frame.querySelector('textarea');
  }

  /** Fit the height to the text, without inline styles in the markup. */
  function fit(): void {
    const area = field();
    if (!area) return;
    area.style.setProperty('block-size', 'auto');
    area.style.setProperty('block-size', `${Math.min(area.scrollHeight, 132)}px`);
  }

  function reset(): void {
    state.draft = '';
    state.editing = null;
    draw();
    fit();
    field()?.focus();
  }

  async function save(blob: Promise<Blob>, name: string): Promise<void> {
    try {
      const address = URL.createObjectURL(await blob);
      const link = document.createElement('a');
      link.href = address;
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch {
      conversation.fail();
    }
  }

  function showPassage(passage: Passage, button: HTMLElement): void {
    const popover = frame.querySelector<HTMLElement>('.passage');
    if (!popover) return;
    cards.hide();
    state.passage = passage;
    number = button;
    draw();
    popover.showPopover();
    place(popover, button, frame);
    popover.querySelector('mark')?.scrollIntoView({ block: 'nearest' });
    popover.querySelector<HTMLElement>('.icon')?.focus();
  }

  const actions: PanelActions = {
    texts,
    close,
    submit(): void {
      if (conversation.refuseWithoutConsent()) return;
      if (state.editing) void conversation.edit(state.editing, state.draft);
      else conversation.send(state.draft);
      conversation.typed(false);
      const log = frame.querySelector('.thread');
      if (log) log.scrollTop = log.scrollHeight;
      reset();
    },
    write(text: string): void {
      state.draft = text;
      conversation.typed(Boolean(text.trim()));
      draw();
      fit();
    },
    edit(message: Message): void {
      state.editing = message;
      state.draft = message.text;
      draw();
      fit();
      field()?.focus();
    },
    cancelEdit: reset,
    detach(): void {
      conversation.attaching.detach();
      field()?.focus(); // The focused button was removed with the file.
    },
    download(message: Message): void {
      const file = message.body.file;
      if (file) void save(conversation.file(file.file_id), file.name);
    },
    transcript(): void {
      void save(conversation.transcript(), 'chat.txt');
    },
    print(): void {
      const messages = frame.querySelector('.messages');
      const title = conversation.site?.name ?? '';
      if (messages && !print(messages, title, sheetText, texts.locale)) actions.transcript();
    },
    show(turn: Pick<Turn, 'citations' | 'sources' | 'claims'>, index: number, button: HTMLElement): void {
      const passage = passageOf(turn, index);
      if (passage) showPassage(passage, button);
    },
    read(article: Article, button: HTMLElement): void {
      showPassage(passageOfArticle(article), button);
    },
    service: config.base,
    passage: {
      service: config.base,
      leave(): void {
        // Browsers restore the focus, but not always from a shadow root. The answer may have been regenerated in the
        // meantime, together with its numbers.
        if (!frame.querySelector('.passage')?.contains(root.activeElement)) return;
        (number?.isConnected ? number : field())?.focus();
      },
      hidden(): void {
        state.passage = null;
        draw();
      },
    },
    star(count: number): void {
      state.stars = count;
      draw();
    },
    describe(comment: string): void {
      state.comment = comment;
    },
  };

  function open(): void {
    frame.hidden = false;
    conversation.open = true;
    void conversation.start();
    draw();
    host.opened(true);
    conversation.markSeen();
    const log = frame.querySelector('.thread');
    if (log) log.scrollTop = log.scrollHeight;
    // A phone's keyboard would cover the conversation that was just opened.
    const touch = matchMedia('(pointer: coarse)').matches;
    void conversation.start().then(() => {
      draw();
      if (!config.page && conversation.open && !touch) field()?.focus();
    });
    if (!config.page) frame.querySelector<HTMLElement>('.icon.close')?.focus();
  }

  function close(): void {
    if (config.page || frame.hidden) return;
    cards.hide();
    conversation.open = false;
    frame.hidden = true;
    host.opened(false);
    draw();
  }

  /** On a phone the chat covers the page, so the keyboard stays inside. */
  function trap(event: KeyboardEvent): void {
    if (config.page || getComputedStyle(frame).getPropertyValue('--covers').trim() !== '1') return;
    const stops = [...frame.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((one) => one.checkVisibility());
    const edge = event.shiftKey ? stops[0] : stops.at(-1);
    if (root.activeElement !== edge) return;
    event.preventDefault();
    (event.shiftKey ? stops.at(-1) : stops[0])?.focus();
  }

  frame.addEventListener('keydown', (event) => {
    event.stopPropagation(); // Do not trigger the page's shortcuts.
    if (event.key === 'Tab') trap(event);
    if (event.key === 'Escape' && cards.open) {
      cards.hide();
      return;
    }
    if (event.key !== 'Escape' || event.defaultPrevented || frame.querySelector(':popover-open')) return;
    if (state.editing) reset();
    else close();
  });
  const dropping = (on: boolean): boolean => frame.classList.toggle('dropping', on && Boolean(conversation.site?.limits.file_bytes));
  frame.addEventListener('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault(); // Otherwise the browser navigates to the file.
    dropping(true);
  });
  frame.addEventListener('dragleave', (event) => {
    if (!frame.contains(event.relatedTarget as Node | null)) dropping(false);
  });
  frame.addEventListener('drop', (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    dropping(false);
    if (!state.editing) conversation.attach(event.dataTransfer.files);
    field()?.focus();
  });
  const view = window.visualViewport;
  view?.addEventListener('resize', () => frame.style.setProperty('--visible', `${Math.round(view.height)}px`));

  return { open, close, resume: () => void conversation.start() };
}
