/** The passage behind a citation number: the exact text of the document, with the cited sentence marked. */

import { html, nothing, type TemplateResult } from 'lit-html';
import { outside } from './answer';
import type { Article, Citation, Turn } from './contract';
import { documentLink } from './markdown';
import type { Texts } from './texts';

export interface Passage {
  readonly citation: Citation;
  readonly text: string;
  readonly marked: readonly [number, number];
}

const GAP = 8;

/** Source of `[index]` in a turn. Answers in progress have only the beginning of a passage. */
export function passageOf(turn: Pick<Turn, 'citations' | 'sources' | 'claims'>, index: number): Passage | undefined {
  const place = turn.citations.findIndex((one) => one.index === index);
  const citation = turn.citations[place];
  if (!citation) return undefined;
  const excerpt = citation.excerpt ?? '';
  const text = turn.sources[place]?.page_content || excerpt || citation.snippet || '';
  return { citation, text, marked: spanOf(text, excerpt, citation.span) };
}

/** Section suggested for reading; it has no number. */
export function passageOfArticle({ doc_id, title, heading, url, text }: Article): Passage {
  return { citation: { index: 0, doc_id, title, heading, url }, text: text ?? '', marked: [0, 0] };
}

function spanOf(text: string, excerpt: string, span?: readonly [number, number]): readonly [number, number] {
  if (!excerpt) return [0, 0];
  // Spans count characters as Python does, and text here counts UTF-16 units: if they disagree, match by text.
  if (span && text.slice(span[0], span[1]) === excerpt) return span;
  const found = text.indexOf(excerpt);
  return found < 0 ? [0, 0] : [found, found + excerpt.length];
}

export interface PassageActions {
  /** Base URL of the service. */
  readonly service: string;
  /** Called before hiding, whatever the cause: the last moment with the focus still inside. */
  leave(): void;
  hidden(): void;
}

export function passageView(passage: Passage | null, texts: Texts, actions: PassageActions): TemplateResult {
  const before = (event: ToggleEvent): void => {
    if (event.newState === 'closed') actions.leave();
  };
  const after = (event: ToggleEvent): void => {
    if (event.newState === 'closed') actions.hidden();
  };
  return html`<div class="passage" popover="auto" role="dialog" aria-labelledby="passage-title" @beforetoggle=${before} @toggle=${after}>${passage ? content(passage, texts, actions.service) : nothing}</div>`;
}

function content({ citation, text, marked: [from, to] }: Passage, texts: Texts, service: string): TemplateResult {
  const address = documentLink(citation.url, service);
  const hide = (event: Event): void => (event.currentTarget as HTMLElement).closest<HTMLElement>('[popover]')?.hidePopover();
  return html`<div class="title">
      ${citation.index ? html`<span class="index">${citation.index}</span>` : nothing}
      <h3 id="passage-title" dir="auto">${citation.title}</h3>
      <button type="button" class="icon" aria-label=${texts.say('close_source')} @click=${hide}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${CROSS} /></svg>
      </button>
    </div>
    ${citation.heading && citation.heading !== citation.title ? html`<p class="under" dir="auto">${citation.heading}</p>` : nothing}
    ${text
      ? html`<div class="quote" dir="auto" tabindex="0" role="group" aria-label=${texts.say('from')}
          >${text.slice(0, from)}${to > from ? html`<mark>${text.slice(from, to)}</mark>` : nothing}${text.slice(to)}</div>`
      : nothing}
    <div class="about">
      ${citation.updated_at ? html`<span>${texts.say('dated', { date: texts.date(citation.updated_at) })}</span>` : nothing}
      ${address ? outside(address, texts.say('open_article')) : nothing}
    </div>`;
}

export const CROSS = 'M6.400 19 5 17.600l5.600-5.600L5 6.400 6.400 5l5.600 5.600L17.600 5 19 6.400 13.400 12l5.600 5.600-1.400 1.400-5.600-5.600Z';

/** Place the passage next to its number, inside the panel. A policy against inline styles allows single properties. */
export function place(popover: HTMLElement, anchor: HTMLElement, panel: HTMLElement): void {
  const around = panel.getBoundingClientRect();
  const number = anchor.getBoundingClientRect();
  const own = popover.getBoundingClientRect();
  const left = Math.min(Math.max(number.left - own.width / 2, around.left + GAP), around.right - own.width - GAP);
  const below = number.bottom + GAP;
  const above = number.top - own.height - GAP;
  const top = below + own.height <= around.bottom - GAP || above < around.top ? below : above;
  popover.style.setProperty('left', `${Math.round(left)}px`);
  popover.style.setProperty('top', `${Math.round(Math.max(GAP, Math.min(top, innerHeight - own.height - GAP)))}px`);
}
