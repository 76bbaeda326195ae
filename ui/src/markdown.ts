/**
 * Renders answers as templates, never as HTML strings: text by a model or an author may contain any tag, and none of
 * them becomes an element. Images would reveal the reader to third parties, so only their description is shown.
 */

import { html, nothing, type TemplateResult } from 'lit-html';
import { Lexer, type Token, type Tokens } from 'marked';

export const FOLDED_AFTER = 4;
const CITATION = /(\S{0,24} ?)\[(\d{1,3})\]([.,;:!?…)»]*)/;
const SPELT_OUT = /^(?:https?:\/\/|mailto:|tel:)/i;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

export interface Rendering {
  /** Button for the source with this number. */
  cite(index: number): TemplateResult;
  more(count: number): string;
}

interface Context extends Rendering {
  readonly text: string;
}

type Piece = TemplateResult | string | typeof nothing;

export function markdown(text: string, rendering: Rendering): Piece[] {
  return blocks(new Lexer({ gfm: true, breaks: true }).lex(text), { ...rendering, text });
}

/** Return an address that is safe to open; undefined for scripts, data and other schemes. */
export function safeLink(address: string | null | undefined): string | undefined {
  try {
    const url = new URL(address ?? '');
    return ['http:', 'https:', 'mailto:', 'tel:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** The same for a document, whose page may be a path in the service's help centre. */
export function documentLink(address: string | null | undefined, service: string): string | undefined {
  return safeLink(address?.startsWith('/help/') ? service + address : address);
}

function blocks(tokens: readonly Token[], rendering: Context): Piece[] {
  return tokens.map((token) => block(token, rendering));
}

function block(token: Token, rendering: Context): Piece {
  switch (token.type) {
    case 'space':
    case 'def':
      return nothing;
    case 'heading':
      return html`<p class="heading">${inline(token as Tokens.Heading, rendering)}</p>`;
    case 'paragraph':
      return html`<p>${inline(token as Tokens.Paragraph, rendering)}</p>`;
    case 'list':
      return list(token as Tokens.List, rendering);
    case 'blockquote':
      return html`<blockquote>${blocks((token as Tokens.Blockquote).tokens, rendering)}</blockquote>`;
    case 'code':
      return html`<pre tabindex="0"><code>${(token as Tokens.Code).text}</code></pre>`;
    case 'hr':
      return html`<hr />`;
    case 'table':
      return table(token as Tokens.Table, rendering);
    case 'text':
      return html`${inline(token as Tokens.Text, rendering)}`;
    default:
      return html`<p>${cited(token.raw.trim(), rendering)}</p>`;
  }
}

function list(token: Tokens.List, rendering: Context): TemplateResult {
  const item = (one: Tokens.ListItem): TemplateResult => html`<li>${blocks(one.tokens, rendering)}</li>`;
  if (!token.ordered) return html`<ul>${token.items.map(item)}</ul>`;
  const first = Number(token.start) || 1;
  const rest = token.items.slice(FOLDED_AFTER);
  const shown = token.items.slice(0, FOLDED_AFTER);
  const beyond = marks(rest).filter((index) => !marks(shown).includes(index));
  if (beyond.length) {
    // A number after the last step stays visible while the step is collapsed.
    const last = shown.pop()!;
    return html`<ol start=${first}>${shown.map(item)}<li>${blocks(last.tokens, rendering)}
      <span class="beyond">${beyond.map((index) => rendering.cite(index))}</span></li></ol>
    ${folded(rest, first, rendering, item)}`;
  }
  return html`<ol start=${first}>${shown.map(item)}</ol>
    ${rest.length ? folded(rest, first, rendering, item) : nothing}`;
}

function folded(
  rest: readonly Tokens.ListItem[],
  first: number,
  rendering: Context,
  item: (one: Tokens.ListItem) => TemplateResult,
): TemplateResult {
  return html`<details class="steps">
    <summary>${rendering.more(rest.length)}</summary>
    <ol start=${first + FOLDED_AFTER}>${rest.map(item)}</ol>
  </details>`;
}

function marks(items: readonly Tokens.ListItem[]): number[] {
  const found = items.flatMap((one) => [...one.raw.matchAll(/\[(\d{1,3})\]\s*$/gm)]);
  return [...new Set(found.map((match) => Number(match[1])))];
}

function table(token: Tokens.Table, rendering: Context): TemplateResult {
  const cells = (row: readonly Tokens.TableCell[]): TemplateResult[] =>
    row.map((cell) => html`<td>${inline(cell, rendering)}</td>`);
  return html`<div class="wide" tabindex="0" role="group">
    <table>
      <thead><tr>${token.header.map((cell) => html`<th scope="col">${inline(cell, rendering)}</th>`)}</tr></thead>
      <tbody>${token.rows.map((row) => html`<tr>${cells(row)}</tr>`)}</tbody>
    </table>
  </div>`;
}

function inline(token: { readonly tokens?: Token[]; readonly text: string }, rendering: Context): Piece[] {
  return token.tokens ? token.tokens.flatMap((one) => span(one, rendering)) : cited(plain(token.text), rendering);
}

function span(token: Token, rendering: Context): Piece | Piece[] {
  switch (token.type) {
    case 'strong':
      return html`<strong>${inline(token as Tokens.Strong, rendering)}</strong>`;
    case 'em':
      return html`<em>${inline(token as Tokens.Em, rendering)}</em>`;
    case 'del':
      return html`<s>${inline(token as Tokens.Del, rendering)}</s>`;
    case 'codespan':
      return html`<code>${(token as Tokens.Codespan).text}</code>`;
    case 'br':
      return html`<br />`;
    case 'link':
      return link(token as Tokens.Link, rendering);
    case 'image':
      return (token as Tokens.Image).text;
    case 'escape':
    case 'text':
      return inline(token as Tokens.Text, rendering);
    default:
      return cited(token.raw, rendering);
  }
}

function link(token: Tokens.Link, rendering: Context): Piece | Piece[] {
  // Only an address that is spelt out in the text, with its slashes: the service has checked each of these.
  const spelt = token.href.replace(/^(?:mailto:|http:\/\/(?=www\.))/, '');
  const address = SPELT_OUT.test(token.href) && rendering.text.includes(spelt) ? safeLink(token.href) : undefined;
  const words = inline(token, rendering);
  return address ? html`<a href=${address} target="_blank" rel="noopener noreferrer nofollow">${words}</a>` : words;
}

/** Render `[2]` as a button, on one line with the preceding word and the following punctuation. */
function cited(text: string, rendering: Context): Piece[] {
  const parts = text.split(CITATION);
  return parts.map((part, place) => {
    if (place % 4 === 0) return part;
    if (place % 4 !== 2) return nothing;
    return html`<span class="whole">${parts[place - 1]}${rendering.cite(Number(part))}${parts[place + 1]}</span>`;
  });
}

/** The lexer does not decode entities in text. */
function plain(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name]!);
}
