/** The chat window: header, thread, end of the conversation, and the input field. */

import { html, nothing, type TemplateResult } from 'lit-html';
import { live } from 'lit-html/directives/live.js';
import { type Card, cardView } from './card';
import { contact } from './contact';
import type { Message } from './contract';
import type { Conversation } from './conversation';
import { CROSS, type Passage, type PassageActions, passageView } from './passage';
import { CLIP, thread, type ThreadActions } from './thread';
import { outside } from './answer';
import { safeLink } from './markdown';

export interface PanelState {
  draft: string;
  editing: Message | null;
  passage: Passage | null;
  card: Card | null;
  stars: number;
  comment: string;
}

export interface PanelActions extends ThreadActions {
  close(): void;
  submit(): void;
  write(text: string): void;
  cancelEdit(): void;
  detach(): void;
  readonly passage: PassageActions;
  transcript(): void;
  print(): void;
  star(count: number): void;
  describe(comment: string): void;
}

const PERSON = 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm0 2c-3.600 0-7.500 1.700-7.500 4.500V20h15v-1.500c0-2.800-3.900-4.500-7.500-4.500Z';
const DOWN = 'M11 4h2v8.200l2.900-2.900 1.400 1.400L12 16l-5.300-5.300 1.400-1.400 2.900 2.900ZM5 18h14v2H5Z';
const PRINT = 'M7 3h10v4H7Zm-3 5h16a1 1 0 0 1 1 1v8h-4v4H7v-4H3V9a1 1 0 0 1 1-1Zm5 7v4h6v-4Z';
const SEND = 'M4 20v-6l8-2-8-2V4l17 8Z';
const STOP = 'M7 7h10v10H7Z';

export function panel(conversation: Conversation, state: PanelState, actions: PanelActions, page: boolean): TemplateResult {
  const { texts } = actions;
  return html`<section class="panel" role=${page ? 'region' : 'dialog'} aria-labelledby="opora-title" dir=${texts.direction}>
    ${header(conversation, actions, page)}
    ${banner(conversation, actions)}
    <div class="thread" role="log" aria-live="off" tabindex="0" aria-label=${texts.say('messages')}>
      <div class="messages">${conversation.refusal ? nothing : thread(conversation, actions)}</div>
    </div>
    ${conversation.chat?.contact_wanted ? contact(conversation) : nothing}
    ${conversation.chat?.state === 'resolved' ? ending(conversation, state, actions) : nothing}
    ${conversation.site && !conversation.refusal ? composer(conversation, state, actions) : nothing}
    <p class="hidden" role="status" aria-live="polite">${conversation.spoken}</p>
    ${passageView(state.passage, texts, actions.passage)} ${cardView(state.card)}
  </section>`;
}

function icon(label: string, path: string, click: () => void, more = ''): TemplateResult {
  return html`<button type="button" class="icon ${more}" aria-label=${label} title=${label} @click=${click}>
    <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg>
  </button>`;
}

function header(conversation: Conversation, actions: PanelActions, page: boolean): TemplateResult {
  const { say } = actions.texts;
  const { chat, site } = conversation;
  const reachable = !chat || chat.state === 'bot' || chat.state === 'resolved';
  return html`<div class="top">
    <div class="who">
      <h2 id="opora-title" dir="auto">${site?.name ?? ''}</h2>
      <p class="status ${chat?.state === 'human' ? 'present' : ''}" dir="auto">${status(conversation)}</p>
    </div>
    ${site && reachable ? icon(say('person'), PERSON, () => void conversation.person()) : nothing}
    ${chat && conversation.shown.length
      ? html`${icon(say('transcript'), DOWN, actions.transcript)}${icon(say('print'), PRINT, actions.print, 'wide-only')}`
      : nothing}
    ${page ? nothing : icon(say('close'), CROSS, actions.close, 'close')}
  </div>`;
}

function status({ chat, site, texts, link, refusal }: Conversation): string {
  if (refusal) return '';
  if (!site || link === 'connecting') return texts.say('connecting');
  if (chat?.state === 'queued' || chat?.state === 'snoozed') {
    return site.hours && !site.hours.open ? site.hours.text : texts.say('queued');
  }
  if (chat?.state === 'human') return texts.say('with', { name: chat.assignee_name || texts.say('staff') });
  return chat?.state === 'resolved' ? texts.say('ended') : texts.say('assistant');
}

function banner(conversation: Conversation, { texts }: PanelActions): TemplateResult | typeof nothing {
  const { refusal, fault } = conversation;
  if (refusal) {
    return html`<div class="banner wrong" role="alert">
      <p>${texts.say(refusal, { wait: texts.wait(conversation.faultSeconds), origin: location.origin })}</p>
      ${refusal === 'unavailable' || refusal === 'busy'
        ? html`<button type="button" class="action" @click=${() => void conversation.start()}>${texts.say('retry')}</button>`
        : nothing}
    </div>`;
  }
  if (conversation.link === 'offline') return html`<div class="banner" role="status"><p>${texts.say('offline')}</p></div>`;
  if (conversation.link === 'limited') return html`<div class="banner" role="status"><p>${texts.say('limited')}</p></div>`;
  const words = fault && texts.say(fault, { wait: texts.wait(conversation.faultSeconds) });
  return words ? html`<div class="banner wrong" role="alert"><p>${words}</p></div>` : nothing;
}

function ending(conversation: Conversation, state: PanelState, actions: PanelActions): TemplateResult {
  const { say } = actions.texts;
  if (conversation.chat?.csat) {
    return html`<div class="rating"><p class="thanks">${say('thanks')}</p></div>`;
  }
  const star = (count: number): TemplateResult => html`<label class=${count <= state.stars ? 'star on' : 'star'}>
    <input
      type="radio"
      name="csat"
      value=${count}
      aria-label=${say('stars', { count })}
      .checked=${live(state.stars === count)}
      @change=${() => actions.star(count)}
    />
    <svg viewBox="0 0 24 24" aria-hidden="true"><path d="m12 3 2.700 5.900 6.300.700-4.700 4.300 1.300 6.300L12 17l-5.600 3.200 1.300-6.300L3 9.600l6.300-.7Z" /></svg>
  </label>`;
  return html`<form class="rating" @submit=${(event: Event) => {
    event.preventDefault();
    void conversation.rate(state.stars, state.comment);
  }}>
    <fieldset><legend>${say('rate')}</legend>${[1, 2, 3, 4, 5].map(star)}</fieldset>
    ${state.stars
      ? html`<input
            class="comment"
            type="text"
            maxlength="1000"
            aria-label=${say('comment')}
            placeholder=${say('comment')}
            .value=${live(state.comment)}
            @input=${(event: Event) => actions.describe((event.target as HTMLInputElement).value)}
          /><button type="submit" class="action">${say('rate_send')}</button>`
      : nothing}
  </form>`;
}

function composer(conversation: Conversation, state: PanelState, actions: PanelActions): TemplateResult {
  const { say } = actions.texts;
  const { site } = conversation;
  const attachment = conversation.attaching.current;
  const busy = conversation.awaiting && !conversation.pending.length && conversation.botOwns;
  const uploading = attachment !== null && !attachment.info && !attachment.fault;
  const empty = !state.draft.trim() && !attachment?.info;
  return html`<form class="composer" @submit=${(event: Event) => {
    event.preventDefault();
    actions.submit();
  }}>
    ${conversation.site?.consent && !conversation.consentStored ? consent(conversation, actions) : nothing}
    ${state.editing
      ? html`<p class="editing">${say(state.editing === conversation.lastCustomer ? 'edit' : 'edit_earlier')}<button type="button" class="quiet" @click=${actions.cancelEdit}>${say('cancel')}</button></p>`
      : nothing}
    ${attachment
      ? html`<p class="attachment ${attachment.fault ? 'wrong' : ''}">
          <span class="words" dir="auto">${attachment.name}</span>
          <span>${attachment.fault ?? (attachment.info ? actions.texts.size(attachment.info.size) : say('uploading', { percent: attachment.percent }))}</span>
          ${uploading ? html`<progress max="100" .value=${attachment.percent} aria-label=${attachment.name}></progress>` : nothing}
          ${icon(say('detach', { name: attachment.name }), CROSS, actions.detach)}
        </p>`
      : nothing}
    <div class="row">
      ${site?.limits.file_bytes
        ? html`<label class="icon clip" title=${say('attach')}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path transform="translate(4)" d=${CLIP} /></svg>
        <input
          type="file"
          aria-label=${say('attach')}
          ?disabled=${state.editing !== null}
          @change=${(event: Event) => {
            const field = event.target as HTMLInputElement;
            conversation.attach(field.files ?? []);
            field.value = '';
          }}
        />
      </label>`
        : nothing}
      <textarea
        rows="1"
        dir="auto"
        enterkeyhint="send"
        maxlength=${site?.limits.question ?? 2000}
        aria-label=${say('write')}
        placeholder=${say('placeholder')}
        .value=${live(state.draft)}
        @input=${(event: Event) => actions.write((event.target as HTMLTextAreaElement).value)}
        @paste=${(event: ClipboardEvent) => {
          const files = event.clipboardData?.files;
          if (!files?.length || state.editing || !site?.limits.file_bytes) return;
          event.preventDefault();
          conversation.attach(files);
        }}
        @keydown=${(event: KeyboardEvent) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          actions.submit();
        }}
      ></textarea>
      ${busy && empty
        ? icon(say('stop'), STOP, () => void conversation.stop(), 'send')
        : html`<button
            type="submit"
            class="icon send"
            aria-label=${say(state.editing ? 'save' : 'send')}
            title=${say(state.editing ? 'save' : 'send')}
            ?disabled=${empty || uploading || conversation.needsConsent}
          >
            <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${SEND} /></svg>
          </button>`}
    </div>
  </form>`;
}

/** Never ticked in advance: the law requires an explicit action. */
function consent(conversation: Conversation, { texts }: PanelActions): TemplateResult {
  const asked = conversation.site!.consent!;
  const address = safeLink(asked.url);
  return html`<div class="consent">
    <label>
      <input
        type="checkbox"
        .checked=${live(conversation.consented)}
        @change=${(event: Event) => conversation.agree((event.target as HTMLInputElement).checked)}
      />
      <span dir="auto">${asked.text}</span>
    </label>
    ${address ? outside(address, texts.say('consent_more')) : nothing}
  </div>`;
}
