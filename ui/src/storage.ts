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
  /** What is stored for the customer of this page: kept here while another one's is in the browser. */
  private own: Stored = {};
  /** The customer of this page; empty until the session starts. */
  private subject = '';

  constructor(private readonly site: string) {}

  read(): Stored {
    const stored = this.stored();
    return this.isOwn(stored) ? stored : this.own;
  }

  /**
   * Store the token of this page's customer. People may share a browser: whatever another one has left is dropped.
   *
   * Return whether the page was another customer's or, when it starts, the browser was another one's or nobody's.
   */
  claim({ token, subject }: Session): boolean {
    const stored = this.stored();
    const isTheirs = subjectOf(stored.token) === subject;
    const changed = this.subject ? this.subject !== subject : !isTheirs;
    this.subject = subject;
    if (isTheirs) this.store({ ...stored, token });
    else this.store(changed ? { token } : { ...this.own, token });
    return changed;
  }

  /** Change what is stored. If another customer has come to this browser since, only this page keeps it. */
  write(change: Partial<Record<keyof Stored, unknown>>): void {
    const after = { ...this.read(), ...change } as Stored;
    if (this.isOwn(this.stored())) this.store(after);
    else this.own = after;
  }

  private isOwn(stored: Stored): boolean {
    return !this.subject || subjectOf(stored.token) === this.subject;
  }

  private stored(): Stored {
    try {
      return JSON.parse(localStorage.getItem(`opora:${this.site}`) ?? '{}') as Stored;
    } catch {
      return this.own;
    }
  }

  private store(after: Stored): void {
    this.own = after;
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

