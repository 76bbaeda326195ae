/** An answer in progress, built event by event. */

import type { Citation } from './contract';

type Details = Readonly<Record<string, unknown>>;

export interface Live {
  readonly turnId: string;
  readonly text: string;
  readonly notice: string;
  readonly checking: boolean;
  readonly citations: readonly Citation[];
  readonly correction: 'revised' | 'retracted' | null;
  /** Whether the first event was received. An answer joined in the middle is shown only when complete. */
  readonly whole: boolean;
}

const EMPTY: Live = { turnId: '', text: '', notice: '', checking: false, citations: [], correction: null, whole: false };

const CHANGES: Readonly<Record<string, (live: Live, details: Details) => Live>> = {
  accepted: (live) => ({ ...EMPTY, turnId: live.turnId, whole: true }),
  stage: (live, details) => ({ ...live, checking: String(details['node']).startsWith('verify') }),
  'sources-early': (live, details) => ({ ...live, citations: details['citations'] as Citation[] }),
  notice: (live, details) => ({ ...live, notice: String(details['text']) }),
  token: (live, details) => ({ ...live, text: live.text + String(details['text']) }),
  revise: (live, details) => ({ ...live, text: String(details['text']), correction: 'revised', whole: true }),
  retract: (live, details) =>
    details['what'] === 'sources'
      ? { ...live, citations: [] }
      : { ...live, text: '', correction: details['notice'] ? 'retracted' : null },
  claim: (live) => live,
  verdict: (live) => live,
  suggestions: (live) => live,
  result: (live) => live,
};

/** Whether an event of a chat's stream belongs to an answer. */
export function isTurnEvent(name: string): boolean {
  return Object.hasOwn(CHANGES, name);
}

/** Apply an event to an answer; an event of another turn starts a new answer. */
export function after(live: Live | null, name: string, details: Details): Live {
  const turnId = String(details['turn_id'] ?? '');
  return CHANGES[name]!(live?.turnId === turnId ? live : { ...EMPTY, turnId }, details);
}
