/** Browser storage for a site's chat. In frames without storage, it lasts as long as the page. */

import type { FileInfo } from './contract';

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

  constructor(private readonly site: string) {}

  read(): Stored {
    try {
      return JSON.parse(localStorage.getItem(`opora:${this.site}`) ?? '{}') as Stored;
    } catch {
      return this.fallback;
    }
  }

  write(change: Partial<Record<keyof Stored, unknown>>): void {
    const after = { ...this.read(), ...change } as Stored;
    this.fallback = after;
    try {
      localStorage.setItem(`opora:${this.site}`, JSON.stringify(after));
    } catch {
      // Kept above.
    }
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

