/** A preview card next to a citation number or a source, shown on hover and keyboard focus. */

import { html, nothing, type TemplateResult } from 'lit-html';
import { place } from './passage';

export interface Card {
  readonly title: string;
  readonly heading: string;
  readonly text: string;
}

/** Element with a card. Templates set the property `card`. */
export interface Carded extends HTMLElement {
  card?: Card;
}

const ID = 'opora-card';
const SHOW_MS = 300;
/** Long enough for a pointer to reach the card, whose text can be selected. */
const HIDE_MS = 250;
const MAX_TEXT = 240;

export function cardView(card: Card | null): TemplateResult {
  return html`<div class="card" id=${ID} popover="manual" role="tooltip">${card ? content(card) : nothing}</div>`;
}

function content({ title, heading, text }: Card): TemplateResult {
  const plain = text.replace(/^#{1,6} /gm, ''); // a passage of small sections has their headings in Markdown
  const shown = plain.length > MAX_TEXT ? `${plain.slice(0, MAX_TEXT).trimEnd()}…` : plain;
  return html`<p class="title" dir="auto">${title}</p>
    ${heading && heading !== title ? html`<p class="under" dir="auto">${heading}</p>` : nothing}
    ${shown ? html`<p class="words" dir="auto">${shown}</p>` : nothing}`;
}

/** Shows and hides the card of the hovered or focused element inside the frame. */
export class Cards {
  private anchor: Carded | null = null;
  private timer = 0;

  constructor(
    private readonly frame: HTMLElement,
    private readonly draw: (card: Card | null) => void,
  ) {
    frame.addEventListener('pointerover', (event) => {
      if (event.pointerType !== 'mouse') return;
      const over = event.target as Element;
      if (over.closest('.card')) this.later(null, 0);
      else this.point(carded(over), SHOW_MS);
    });
    frame.addEventListener('scroll', () => this.settle(), true);
    frame.addEventListener('pointerleave', () => this.point(null, 0));
    frame.addEventListener('focusin', (event) => {
      const focused = event.target as Element;
      // A passage that was just closed needs no preview.
      const returns = (event.relatedTarget as Element | null)?.closest('.passage');
      this.point(focused.matches(':focus-visible') && !returns ? carded(focused) : null, 0);
    });
    frame.addEventListener('focusout', (event) => {
      // Hide a card opened by keyboard as soon as the focus moves: the next Escape is meant for another element.
      if (this.anchor && carded(event.target as Element) === this.anchor) this.hide();
      else this.point(null, 0);
    });
  }

  get open(): boolean {
    return this.anchor !== null;
  }

  hide(): void {
    clearTimeout(this.timer);
    if (!this.anchor) return;
    this.anchor.removeAttribute('aria-describedby');
    this.anchor = null;
    this.popover?.hidePopover();
    this.draw(null);
  }

  /** Called after each render: the number may have moved, or have disappeared with a regenerated answer. */
  settle(): void {
    if (!this.anchor) return;
    if (this.anchor.isConnected) place(this.popover!, this.anchor, this.frame);
    else this.hide();
  }

  private get popover(): HTMLElement | null {
    return this.frame.querySelector('.card');
  }

  private point(target: Carded | null, delay: number): void {
    if (target === this.anchor) this.later(null, 0);
    else if (target) this.later(() => this.show(target), delay);
    else if (this.anchor) this.later(() => this.hide(), HIDE_MS);
    else this.later(null, 0);
  }

  private later(act: (() => void) | null, delay: number): void {
    clearTimeout(this.timer);
    if (act) this.timer = setTimeout(act, delay);
  }

  private show(target: Carded): void {
    this.hide();
    if (!target.isConnected || !target.card || this.frame.querySelector('.passage:popover-open')) return;
    this.anchor = target;
    this.draw(target.card);
    const popover = this.popover!;
    popover.showPopover();
    place(popover, target, this.frame);
    target.setAttribute('aria-describedby', ID);
  }
}

function carded(element: Element): Carded | null {
  for (let one: Element | null = element; one; one = one.parentElement) if ((one as Carded).card) return one as Carded;
  return null;
}
