/** The messages of a conversation, oldest first. */

import { html, nothing, type TemplateResult } from 'lit-html';
import { repeat } from 'lit-html/directives/repeat.js';
import { answer, type AnswerActions, chips, cite, sources } from './answer';
import type { Article, Message, Outcome, Turn } from './contract';
import type { Conversation } from './conversation';
import { eventText, linkedChat } from './history';
import { markdown } from './markdown';
import type { Pending } from './storage';
import type { Texts } from './texts';

export interface ThreadActions {
  readonly texts: Texts;
  /** Base URL of the service. */
  readonly service: string;
  read(article: Article, button: HTMLElement): void;
  show(turn: Pick<Turn, 'citations' | 'sources' | 'claims'>, index: number, button: HTMLElement): void;
  edit(message: Message): void;
  download(message: Message): void;
}

export function thread(conversation: Conversation, actions: ThreadActions): TemplateResult {
  const { texts } = actions;
  const { pending, shown } = conversation;
  const last = conversation.lastBot;
  const settled = conversation.botOwns && !conversation.awaiting && conversation.chat?.state !== 'resolved';
  return html`
    ${welcome(conversation)}
    ${repeat(
      shown,
      (one) => one.seq,
      (one) => message(one, conversation, actions, settled && one === last),
    )}
    ${repeat(
      pending,
      (one) => one.client_id,
      (one) => unsent(one, conversation, texts),
    )}
    ${conversation.awaiting ? writing(conversation, actions) : nothing}
    ${presence(conversation)}
  `;
}

function presence({ chat, presence: { typing, looking }, texts }: Conversation): TemplateResult | typeof nothing {
  if (chat?.state === 'resolved') return nothing;
  if (typing) return html`<p class="typing" dir="auto">${dots()}${texts.say('typing', { name: typing })}</p>`;
  if (!looking || chat?.owner !== 'human') return nothing;
  return html`<p class="typing" dir="auto">${texts.say('looking', { name: looking })}</p>`;
}

function welcome(conversation: Conversation): TemplateResult | typeof nothing {
  const { site, texts } = conversation;
  if (!site) return nothing;
  const fresh = !conversation.shown.length && !conversation.pending.length;
  return html`${site.welcome ? html`<div class="message bot"><div class="bubble" dir="auto">${site.welcome}</div></div>` : nothing}
  ${fresh ? chips(site.suggested, texts.say('followups'), (question) => conversation.send(question)) : nothing}`;
}

function message(one: Message, conversation: Conversation, actions: ThreadActions, current: boolean): TemplateResult {
  const { texts } = actions;
  if (one.kind === 'event' || one.author === 'system') {
    const words = one.kind === 'event' ? eventText(one, texts) : one.text;
    const linked = linkedChat(one);
    const link = html` <button type="button" class="quiet" @click=${() => void conversation.visit(linked)}>${texts.say('open_chat')}</button>`;
    return html`${words ? html`<p class="event" dir="auto">${words}${linked ? link : nothing}</p>` : nothing}`;
  }
  const turn = one.body.turn;
  return html`<article class="message ${one.author}" aria-label=${`${author(one, texts)}, ${texts.time(one.created_at)}`}>
    ${one.author === 'operator' ? html`<p class="name" dir="auto">${author(one, texts)}</p>` : nothing}
    <div class="bubble">
      ${one.author === 'bot' && turn ? answer(turn, answerActions(conversation, actions, current)) : plain(one, actions)}
    </div>
    ${foot(one, conversation, actions, current)}
  </article>
  ${current && turn && ANSWERS.has(turn.outcome) ? chips(turn.suggested_questions.slice(0, 3), texts.say('followups'), (question) => conversation.send(question)) : nothing}`;
}

/** Other outcomes have separate topics, and a chat waiting for an operator needs no more questions. */
const ANSWERS: ReadonlySet<Outcome> = new Set(['answered', 'partially_answered', 'low_confidence']);

function author(one: Message, texts: Texts): string {
  if (one.author === 'customer') return texts.say('you');
  return one.author === 'bot' ? texts.say('bot') : one.name || texts.say('staff');
}

function answerActions(conversation: Conversation, actions: ThreadActions, current: boolean): AnswerActions {
  const { site } = conversation;
  return {
    texts: actions.texts,
    hours: site?.hours?.text ?? '',
    topics: site?.suggested ?? [],
    current,
    service: actions.service,
    show: actions.show,
    read: actions.read,
    ask: (question) => conversation.send(question),
    person: () => void conversation.person(),
    again: (turnId) => void conversation.regenerate(turnId),
  };
}

function plain(one: Message, actions: ThreadActions): TemplateResult {
  const file = one.body.file;
  return html`${file
      ? html`<button
          type="button"
          class="file"
          aria-label=${actions.texts.say('download', { name: file.name })}
          @click=${() => actions.download(one)}
        >
          <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${CLIP} /></svg>
          <span class="words" dir="auto">${file.name}</span><span class="size">${actions.texts.size(file.size)}</span>
        </button>`
      : nothing}
    ${one.text && one.text !== file?.name ? html`<div class="text written" dir="auto">${one.text}</div>` : nothing}`;
}

function foot(one: Message, conversation: Conversation, actions: ThreadActions, current: boolean): TemplateResult {
  const { texts } = actions;
  const turn = one.body.turn;
  const rated = turn && turn.outcome !== 'low_confidence' && ANSWERS.has(turn.outcome);
  const buttons = ways(one, conversation, actions, current);
  // A hidden button leaves its gap where it does not show.
  const [before, after] = one.author === 'customer' ? [buttons, nothing] : [nothing, buttons];
  return html`<footer>
    ${before}<time datetime=${one.created_at}>${texts.time(one.created_at)}</time>
    ${rated ? votes(turn, conversation, texts) : nothing} ${turn && conversation.tools ? meter(turn, texts) : nothing}
    ${after}
  </footer>`;
}

/** Ways back in the conversation: edit a message, have an answer written anew, continue from it in another chat. */
function ways(one: Message, conversation: Conversation, { texts, edit }: ThreadActions, current: boolean): unknown {
  const { say } = texts;
  const turn = one.body.turn;
  const button = (words: string, act: () => void): TemplateResult =>
    html`<button type="button" class="quiet" @click=${act}>${words}</button>`;
  const answered = turn && ANSWERS.has(turn.outcome);
  const last = current || one === conversation.lastCustomer;
  const buttons = [
    one.author === 'customer' && one.kind === 'text' && conversation.canReturnTo(one)
      ? button(say('edit'), () => edit(one))
      : nothing,
    answered && !conversation.awaiting && conversation.canReturnTo(one)
      ? button(say(current ? 'regenerate' : 'regenerate_from'), () => void conversation.regenerate(turn.turn_id))
      : nothing,
    turn && conversation.tools ? button(say('branch'), () => void conversation.branch(one)) : nothing,
  ].filter((each) => each !== nothing);
  return buttons.length ? html`<span class=${last ? 'again' : 'again earlier'}>${buttons}</span>` : nothing;
}

/** What an answer took, from its record. */
function meter({ meta }: Turn, texts: Texts): TemplateResult {
  const calls = meta.llm_calls
    ? texts.say('meter_calls', { calls: texts.number(meta.llm_calls), tokens: texts.number(meta.tokens.total ?? 0) })
    : texts.say('meter_local');
  const cost = meta.cost_usd === null ? '' : ` · $${texts.number(meta.cost_usd, 5)}`;
  return html`<span class="meter">${texts.say('meter_s', { seconds: texts.number(Math.max(meta.latency_ms / 1_000, 0.1), 1) })} · ${calls}${cost}</span>`;
}

function votes(turn: Turn, conversation: Conversation, texts: Texts): TemplateResult {
  const given = conversation.votes.get(turn.turn_id);
  const button = (thumb: 'up' | 'down', words: string): TemplateResult => html`<button
    type="button"
    class="quiet"
    aria-pressed=${given === thumb ? 'true' : 'false'}
    @click=${() => void conversation.vote(turn.turn_id, thumb)}
  >${words}</button>`;
  return html`<span class="votes" role="group" aria-label=${texts.say('useful')}>
    <span aria-hidden="true">${texts.say('useful')}</span>${button('up', texts.say('yes'))}${button('down', texts.say('no'))}
  </span>`;
}

function unsent(one: Pending, conversation: Conversation, texts: Texts): TemplateResult {
  return html`<article class="message customer unsent" aria-label=${texts.say('you')}>
    <div class="bubble">
      ${one.file ? html`<p class="file"><span class="words" dir="auto">${one.file.name}</span></p>` : nothing}
      ${one.text ? html`<div class="text written" dir="auto">${one.text}</div>` : nothing}
    </div>
    <footer>
      ${one.failed
        ? html`<span class="wrong">${texts.say('unsent')}</span>
            <button type="button" class="quiet" @click=${() => conversation.outbox.retry(one.client_id)}>${texts.say('retry')}</button>`
        : sending(one, conversation, texts)}
    </footer>
  </article>`;
}

function sending(one: Pending, { outbox }: Conversation, texts: Texts): TemplateResult {
  const seconds = outbox.waiting;
  if (!seconds) return html`<span>${texts.say('pending')}</span>`;
  return html`<span>${texts.say('resend', { wait: texts.wait(seconds) })}</span>
    <button type="button" class="quiet" @click=${() => outbox.retry(one.client_id)}>${texts.say('send_now')}</button>`;
}

function writing({ live, delayed }: Conversation, actions: ThreadActions): TemplateResult {
  const { texts } = actions;
  const stage = live?.checking ? 'checking' : delayed ? 'delayed' : 'thinking';
  const text = live?.whole ? live.text : '';
  const known = new Map(live?.citations.map((one) => [one.index, one]));
  const turn = { citations: live?.citations ?? [], sources: [], claims: [] };
  const show = (index: number, button: HTMLElement): void => actions.show(turn, index, button);
  const rendering = {
    cite: (index: number) => cite(index, known.get(index), texts, (button) => show(index, button)),
    more: (count: number) => texts.say('more_steps', { count }),
  };
  return html`<article class="message bot live" aria-busy="true" aria-label=${texts.say('bot')}>
    <div class="bubble">
      <div class="answer">
        ${live?.correction ? html`<p class="notice" role="note">${texts.say(live.correction)}</p>` : nothing}
        ${live?.notice ? html`<p class="notice" role="note" dir="auto">${live.notice}</p>` : nothing}
        ${text ? html`<div class="text" dir="auto">${markdown(text, rendering)}</div>` : nothing}
        ${sources(turn.citations, texts, show)}
        <p class="stage">${dots()}${text ? '' : texts.say(stage)}</p>
      </div>
    </div>
  </article>`;
}

function dots(): TemplateResult {
  return html`<span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>`;
}

export const CLIP =
  'M8 18.500a4.500 4.500 0 0 1-4.500-4.500V6.500a3.500 3.500 0 0 1 7 0V13a2.500 2.500 0 0 1-5 0V7H7v6a1 1 0 0 0 2 0V6.500a2 2 0 0 0-4 0V14a3 3 0 0 0 6 0V7h1.500v7A4.500 4.500 0 0 1 8 18.500Z';
