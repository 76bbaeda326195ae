/** What was said, as it is stored: in order, each message once, and without what another message replaces. */

import type { Message } from './contract';
import type { Key, Texts } from './texts';

/** A message counts once, however often and in whichever order it comes. */
export function merged(known: readonly Message[], more: readonly Message[]): readonly Message[] {
  const bySeq = new Map(known.map((one) => [one.seq, one]));
  for (const one of more) if (!bySeq.has(one.seq) && one.kind !== 'note') bySeq.set(one.seq, one);
  return [...bySeq.values()].sort((one, other) => one.seq - other.seq);
}

/** What has been replaced by an edit or by another answer stays in the records and out of sight. */
export function visible(messages: readonly Message[]): readonly Message[] {
  const hidden = new Set<number>();
  for (const one of messages) {
    const id = one.body['replaces'];
    const replaced = typeof id === 'string' ? messages.find((other) => other.message_id === id) : undefined;
    if (!replaced) continue;
    hidden.add(replaced.seq);
    if (one.author !== 'customer') continue;
    // Whatever the assistant said to the question as it was goes with it.
    const answers = messages.filter((other) => other.seq > replaced.seq && other.seq < one.seq);
    for (const answer of answers) if (answer.author === 'bot' || answer.body.event === 'stopped') hidden.add(answer.seq);
  }
  return messages.filter((one) => !hidden.has(one.seq));
}

export function awaitsAnswer(messages: readonly Message[]): boolean {
  const decides = (one: Message): boolean => one.kind !== 'event' || TURN_LINES.has(one.body.event ?? '');
  const last = messages.findLast(decides);
  return last?.author === 'customer' || last?.body.event === 'asked_again';
}

/** A line about what happened: what the service has written, or our own words; empty for what customers need not know. */
export function eventText(message: Message, texts: Texts): string {
  if (message.text) return message.text;
  const key = `event_${message.body.event ?? ''}`;
  return texts.has(key) ? texts.say(key as Key, { name: message.name || texts.say('staff') }) : '';
}

/** A message as a screen reader says it. */
export function spokenText(message: Message, texts: Texts): string {
  if (message.author === 'customer') return '';
  const name = message.author === 'bot' ? texts.say('bot') : message.name || texts.say('staff');
  const notice = message.body.turn?.answer.notice ?? '';
  const words = message.kind === 'event' ? eventText(message, texts) : `${name}: ${notice} ${message.text}`;
  return words.replace(/\[\d+\]/g, '').replace(/[*_`#]+/g, '');
}

const TURN_LINES = new Set(['stopped', 'asked_again']);
