/** Browser storage for a site's chat. In frames without storage, it lasts as long as the page. */

import type { FileInfo, Session } from './contract';

/** Unsent message: retried under the same id until the service has stored it. */
export interface Pending {
  readonly client_id: string;
  readonly text: string;
  readonly file?: FileInfo;
  readonly failed?: boolean;
}

interface Stored {
  token?: string;
  chat?: string;
  consent?: string;
  pending?: readonly Pending[];
}

export class Memory {
  private fallback: Stored = {};
  /** The customer of this page. */
  private subject = '';

  constructor(private readonly site: string) {}

  read(): Stored {
    try {
      return JSON.parse(localStorage.getItem(`opora:${this.site}`) ?? '{}') as Stored;
    } catch {
      return this.fallback;
    }
  }

  /**
   * Store the token of this page's customer. People may share a browser: whatever another one has left is dropped.
   *
   * Return whether the browser was another customer's, or nobody's.
   */
  claim({ token, subject }: Session): boolean {
    const before = this.read();
    const changed = subjectOf(before.token) !== subject;
    this.subject = subject;
    this.store(changed ? { token } : { ...before, token });
    return changed;
  }

  /** Change what is stored, unless another customer has come to this browser since. */
  write(change: Partial<Record<keyof Stored, unknown>>): void {
    const before = this.read();
    if (!this.subject || subjectOf(before.token) === this.subject) this.store({ ...before, ...change } as Stored);
  }

  private store(after: Stored): void {
    this.fallback = after;
    try {
      localStorage.setItem(`opora:${this.site}`, JSON.stringify(after));
    } catch {
      // Kept above.
    }
  }
}

/** Return the customer that a token names; empty if it is none of the service's. */
function subjectOf(token = ''): string {
  try {
    const claims = token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/');
    return String((JSON.parse(atob(claims)) as { sub: unknown }).sub);
  } catch {
    return '';
  }
}

/** `crypto.randomUUID` is missing on pages without TLS. */
export function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Run in one tab at a time, if the browser supports locks: pages without TLS have none. */
export function exclusively<T>(name: string, work: () => Promise<T>): Promise<T> {
  return 'locks' in navigator ? (navigator.locks.request(name, work) as Promise<T>) : work();
}

