/** Stored messages in order, without duplicates and without replaced messages. */

import type { Message } from './contract';
import type { Key, Texts } from './texts';

/** Merge messages by number; duplicates and any order of arrival are allowed. */
export function merged(known: readonly Message[], more: readonly Message[]): readonly Message[] {
  const bySeq = new Map(known.map((one) => [one.seq, one]));
  for (const one of more) if (!bySeq.has(one.seq) && one.kind !== 'note') bySeq.set(one.seq, one);
  return [...bySeq.values()].sort((one, other) => one.seq - other.seq);
}

/**
 * Hide messages replaced by an edit or by another answer, and everything said since then except by people. They stay in
 * the records.
 */
export function visible(messages: readonly Message[]): readonly Message[] {
  const hidden = new Set<number>();
  for (const one of messages) {
    const id = one.body['replaces'];
    const replaced = typeof id === 'string' ? messages.find((other) => other.message_id === id) : undefined;
    if (!replaced) continue;
    for (const other of messages) if (other.seq >= replaced.seq && other.seq < one.seq && isOfTurns(other)) hidden.add(other.seq);
  }
  return messages.filter((one) => !hidden.has(one.seq));
}

/** Whether the conversation can go back to a message: no person has replied or taken part since. */
export function canReturnTo(messages: readonly Message[], seq: number): boolean {
  return messages.every((one) => one.seq < seq || isOfTurns(one) || linkedChat(one) !== '');
}

function isOfTurns({ author, body }: Message): boolean {
  return author === 'customer' || author === 'bot' || OF_TURNS.has(body.event ?? '');
}

/** Chat that a line leads to; empty for other messages. */
export function linkedChat({ body }: Message): string {
  return body.event?.startsWith('branched_') ? String(body['chat_id']) : '';
}

export function awaitsAnswer(messages: readonly Message[]): boolean {
  const decides = (one: Message): boolean => one.kind !== 'event' || TURN_LINES.has(one.body.event ?? '');
  const last = messages.findLast(decides);
  return last?.author === 'customer' || last?.body.event === 'asked_again';
}

/** Text of an event: the service's own, or a local one; empty for events hidden from customers. */
export function eventText(message: Message, texts: Texts): string {
  if (message.text) return message.text;
  const key = `event_${message.body.event ?? ''}`;
  return texts.has(key) ? texts.say(key as Key, { name: message.name || texts.say('staff') }) : '';
}

/** Text of a message for screen readers. */
export function spokenText(message: Message, texts: Texts): string {
  if (message.author === 'customer') return '';
  const name = message.author === 'bot' ? texts.say('bot') : message.name || texts.say('staff');
  const notice = message.body.turn?.answer.notice ?? '';
  const words = message.kind === 'event' ? eventText(message, texts) : `${name}: ${notice} ${message.text}`;
  return words.replace(/\[\d+\]/g, '').replace(/[*_`#]+/g, '');
}

const OF_TURNS = new Set(['asked_again', 'delayed', 'stopped']);
const TURN_LINES = new Set(['stopped', 'asked_again']);
