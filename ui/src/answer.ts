/** Appearance of each of the thirteen outcomes of a turn. */

import { html, nothing, type TemplateResult } from 'lit-html';
import type { Card } from './card';
import type { Article, Citation, Outcome, Turn } from './contract';
import { documentLink, markdown } from './markdown';
import type { Texts } from './texts';

interface Shape {
  /** Whether the answer was verified against its sources. */
  readonly proved?: true;
  readonly articles?: true;
  readonly topics?: true;
  readonly ticket?: true;
  readonly retry?: true;
  /** How prominently an operator is offered. */
  readonly person?: 'button' | 'link';
  readonly links?: 1 | 2;
  readonly look?: 'hint' | 'plain' | 'weighty';
}

const SHAPES: Readonly<Record<Outcome, Shape>> = {
  answered: { proved: true, links: 2 },
  partially_answered: { proved: true, links: 1, articles: true, person: 'link' },
  low_confidence: { articles: true, person: 'link' },
  clarify: { articles: true, topics: true },
  refused: { articles: true, person: 'link' },
  cannot_answer: { articles: true, person: 'button' },
  human_followup: { ticket: true, look: 'weighty' },
  high_stakes: { ticket: true, person: 'button', look: 'weighty' },
  out_of_scope: { topics: true, person: 'button' },
  irrelevant: { topics: true },
  nonsense: { look: 'hint' },
  blocked: { look: 'plain' },
  failed: { retry: true, person: 'button', look: 'plain' },
};

export interface AnswerActions {
  readonly texts: Texts;
  readonly hours: string;
  readonly topics: readonly string[];
  /** Whether the turn is the last one and the assistant has the chat: its offers are still available. */
  readonly current: boolean;
  /** Base URL of the service. */
  readonly service: string;
  show(turn: Turn, index: number, button: HTMLElement): void;
  read(article: Article, button: HTMLElement): void;
  ask(question: string): void;
  person(): void;
  again(turnId: string): void;
}

export function answer(turn: Turn, actions: AnswerActions): TemplateResult {
  const { say } = actions.texts;
  const shape: Shape = SHAPES[turn.outcome] ?? {};
  const { notice, text, verified } = turn.answer;
  // Those that the notice names need no list.
  const missing = turn.answer.missing.filter((one) => !notice?.includes(one));
  return html`<div class="answer ${shape.look ?? ''}" data-outcome=${turn.outcome}>
    ${notice ? html`<p class="notice" role="note" dir="auto">${notice}</p>` : nothing}
    ${text ? html`<div class="text" dir="auto">${prose(turn, actions)}</div>` : nothing}
    ${missing.length ? gaps(missing, actions) : nothing}
    ${shape.ticket ? ticket(turn, actions) : nothing}
    ${shape.proved && verified
      ? html`<p class="checked">${mark()}${say('checked')}</p>`
      : nothing}
    ${shape.proved ? sources(turn.citations, actions.texts, (index, button) => actions.show(turn, index, button)) : nothing}
    ${shape.links ? related(turn, shape.links, actions) : nothing}
    ${shape.topics && actions.current ? topics(turn, actions) : nothing}
    ${shape.articles && turn.articles.length ? articles(turn.articles, actions) : nothing} ${actions.current ? ways(turn, shape, actions) : nothing}
  </div>`;
}

function prose(turn: Turn, actions: AnswerActions): unknown {
  const known = new Map(turn.citations.map((one) => [one.index, one]));
  return markdown(turn.answer.text, {
    cite: (index) => cite(index, known.get(index), actions.texts, (button) => actions.show(turn, index, button)),
    more: (count) => actions.texts.say('more_steps', { count }),
  });
}

/** Citation number in the text; opens the passage that supports the sentence. */
export function cite(
  index: number,
  citation: Citation | undefined,
  texts: Texts,
  show: (button: HTMLElement) => void,
): TemplateResult {
  if (!citation) return html`[${index}]`;
  const open = (event: Event): void => show(event.currentTarget as HTMLElement);
  return html`<button
    type="button"
    class="cite"
    aria-haspopup="dialog"
    aria-label=${texts.say('source_of', { index, title: citation.title })}
    .card=${cardOf(citation)}
    @click=${open}
  >${index}</button>`;
}

function cardOf({ title, heading, excerpt, snippet }: Citation): Card {
  return { title, heading, text: excerpt || snippet || '' };
}

function gaps(missing: readonly string[], { texts }: AnswerActions): TemplateResult {
  return html`<div class="missing">
    <p>${texts.say('missing')}</p>
    <ul>${missing.map((one) => html`<li dir="auto">${one}</li>`)}</ul>
  </div>`;
}

function ticket(turn: Turn, { texts, hours }: AnswerActions): TemplateResult | typeof nothing {
  const handoff = turn.handoff;
  if (!handoff?.ticket_id) return nothing;
  const when = handoff.staffing ? '' : hours;
  const named = turn.answer.text.includes(handoff.ticket_id);
  if (named && !when) return nothing;
  return html`<div class="ticket">
    ${named ? nothing : html`<p class="number">${texts.say('ticket', { ticket: handoff.ticket_id })}</p>`}
    ${when ? html`<p class="hours">${when}</p>` : nothing}
  </div>`;
}

export function sources(
  citations: readonly Citation[],
  texts: Texts,
  show: (index: number, button: HTMLElement) => void,
): TemplateResult | typeof nothing {
  const cited = citations.filter((one) => one.cited !== false);
  if (!cited.length) return nothing;
  const open = (index: number) => (event: Event) => show(index, event.currentTarget as HTMLElement);
  return html`<details class="sources">
    <summary>${texts.say('sources')} <span class="count">${cited.length}</span></summary>
    <ol>
      ${cited.map(
        (one) => html`<li>
          <button type="button" class="source" aria-haspopup="dialog" .card=${cardOf(one)} @click=${open(one.index)}>
            <span class="index">${one.index}</span>
            <span class="words" dir="auto">${one.title}${heading(one)}</span>
          </button>
        </li>`,
      )}
    </ol>
  </details>`;
}

function heading(one: { readonly title: string; readonly heading: string }): TemplateResult | typeof nothing {
  return one.heading && one.heading !== one.title ? html`<span class="under">${one.heading}</span>` : nothing;
}

/** Pages of the cited documents, and documents linked to them; those without a page open beside the answer. */
function related(turn: Turn, most: number, { texts, service, show }: AnswerActions): TemplateResult | typeof nothing {
  const pages = new Map<string, readonly [address: string, title: string]>();
  const beside: Citation[] = [];
  for (const one of turn.citations) {
    const address = documentLink(one.url, service);
    if (one.cited !== false && address && pages.size < most && !pages.has(one.doc_id))
      pages.set(one.doc_id, [address, one.title]);
    else if (one.cited === false && one.origin === 'related') beside.push(one);
  }
  if (!pages.size && !beside.length) return nothing;
  const link = (one: Citation): TemplateResult => {
    const address = documentLink(one.url, service);
    if (address) return outside(address, one.title);
    const open = (event: Event): void => show(turn, one.index, event.currentTarget as HTMLElement);
    return html`<button type="button" class="soft" aria-haspopup="dialog" @click=${open}>${one.title}</button>`;
  };
  const cited = [...pages.values()].map(([address, title]) => html`<li>${outside(address, title)}</li>`);
  const others = beside.map((one) => html`<li .card=${cardOf(one)}>${link(one)}</li>`);
  return html`<div class="related">
    ${cited.length ? html`<p>${texts.say('read_more')}</p><ul>${cited}</ul>` : nothing}
    ${others.length ? html`<p>${texts.say('related')}</p><ul>${others}</ul>` : nothing}
  </div>`;
}

export function outside(address: string, words: string): TemplateResult {
  return html`<a href=${address} target="_blank" rel="noopener noreferrer nofollow" dir="auto">${words}</a>`;
}

function articles(list: readonly Article[], actions: AnswerActions): TemplateResult {
  return html`<div class="articles">
    <ul aria-label=${actions.texts.say('articles')}>
      ${list.map(
        (one, place) => html`<li .card=${{ title: one.title, heading: one.heading, text: one.text || one.snippet }}>
          <p class="title" dir="auto">${articleTitle(one, actions)}</p>
          ${one.heading && one.heading !== one.title ? html`<p class="under" dir="auto">${one.heading}</p>` : nothing}
          ${one.snippet ? html`<p class="snippet" dir="auto">${one.snippet}</p>` : nothing} ${sections(one, actions, place === 0)}
        </li>`,
      )}
    </ul>
  </div>`;
}

function sections(article: Article, { service, texts }: AnswerActions, open: boolean): TemplateResult | typeof nothing {
  const links = (article.sections ?? []).map(({ heading, url }) => {
    const address = documentLink(url, service);
    return address ? outside(address, heading) : nothing;
  });
  if (!links.length) return nothing;
  return html`<details class="sections" ?open=${open}>
    <summary>${texts.say('sections')}</summary>
    <div>${links}</div>
  </details>`;
}

/** The article's page; without one, the section itself opens beside its title. */
function articleTitle(one: Article, { service, read }: AnswerActions): TemplateResult | string {
  const address = documentLink(one.url, service);
  if (address) return outside(address, one.title);
  if (!one.text) return one.title;
  const open = (event: Event): void => read(one, event.currentTarget as HTMLElement);
  return html`<button type="button" class="soft" aria-haspopup="dialog" @click=${open}>${one.title}</button>`;
}

function topics(turn: Turn, actions: AnswerActions): TemplateResult | typeof nothing {
  const options = turn.clarification?.options.length ? turn.clarification.options : turn.suggested_questions;
  return chips(options.length ? options : actions.topics, actions.texts.say('topics'), actions.ask);
}

export function chips(
  options: readonly string[],
  label: string,
  ask: (question: string) => void,
): TemplateResult | typeof nothing {
  if (!options.length) return nothing;
  return html`<div class="chips" role="group" aria-label=${label}>
    ${options.map((one) => html`<button type="button" class="chip" dir="auto" @click=${() => ask(one)}>${one}</button>`)}
  </div>`;
}

function ways(turn: Turn, shape: Shape, actions: AnswerActions): TemplateResult | typeof nothing {
  const { say } = actions.texts;
  const person = shape.person && turn.handoff?.status !== 'open' ? shape.person : undefined;
  if (!person && !shape.retry) return nothing;
  return html`<div class="ways">
    ${shape.retry
      ? html`<button type="button" class="action" @click=${() => actions.again(turn.turn_id)}>${say('retry')}</button>`
      : nothing}
    ${person
      ? html`<button type="button" class=${person === 'link' ? 'soft' : 'action'} @click=${actions.person}>
          ${say('ask_person')}
        </button>`
      : nothing}
  </div>`;
}

function mark(): TemplateResult {
  return html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M6.500 11.600 3 8.100l1.100-1.100 2.400 2.400L11.900 4 13 5.100Z" /></svg>`;
}
