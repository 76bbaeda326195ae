/** Unsent messages. Each is kept until the service has stored it, even if the connection or the page is lost. */

import { Problem } from './api';
import { type Memory, type Pending, uuid } from './storage';

export const UNKNOWN_WAIT_SECONDS = 30;

interface Way {
  /** Whether sending is allowed. */
  ready(): boolean;
  deliver(message: Pending): Promise<void>;
  refused(problem: Problem): Promise<void>;
  unreachable(): void;
  changed(): void;
}

export class Outbox {
  pending: readonly Pending[] = [];
  private sending = false;
  /** Rate limit: do not send before this time. */
  private resumeAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly memory: Memory,
    private readonly way: Way,
  ) {}

  /** Take over what earlier pages of this customer have not sent. Until the session starts, it may be another one's. */
  restore(): void {
    const all = this.ofAllPages();
    this.change(() => all);
  }

  /** Store the unsent messages again: another customer of the browser may have replaced them. */
  keep(): void {
    this.memory.write({ pending: this.ofAllPages() });
  }

  add(message: Omit<Pending, 'client_id'>): void {
    const added: Pending = { client_id: uuid(), ...message };
    this.change((all) => [...all, added]);
    void this.send();
  }

  /** Seconds until the next attempt; 0: no wait. */
  get waiting(): number {
    return Math.max(0, Math.ceil((this.resumeAt - Date.now()) / 1_000));
  }

  retry(clientId: string): void {
    this.resumeAt = 0;
    this.change((all) => all.map(({ failed, ...one }) => (failed && one.client_id !== clientId ? { ...one, failed } : one)));
    void this.send();
  }

  /** Remove messages that appear in the chat. */
  settle(clientIds: ReadonlySet<string | null>): void {
    if (this.pending.some((one) => clientIds.has(one.client_id))) {
      this.change((all) => all.filter((one) => !clientIds.has(one.client_id)));
    }
  }

  async send(): Promise<void> {
    if (this.sending) return;
    this.sending = true;
    try {
      for (let next = this.next(); next; next = this.next()) await this.sendOne(next);
    } catch {
      this.way.unreachable(); // Called again once the service is reachable.
    } finally {
      this.sending = false;
      this.way.changed();
    }
  }

  private ofAllPages(): readonly Pending[] {
    const own = new Set(this.pending.map((one) => one.client_id));
    const others = (this.memory.read().pending ?? []).filter((one) => !own.has(one.client_id));
    return [...others, ...this.pending];
  }

  private next(): Pending | undefined {
    return this.way.ready() && !this.waiting ? this.pending.find((one) => !one.failed) : undefined;
  }

  private async sendOne(message: Pending): Promise<void> {
    try {
      await this.way.deliver(message);
      this.settle(new Set([message.client_id]));
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status === 0 || problem.status >= 500) throw problem;
      if (problem.status === 429 && problem.code !== 'chats_full') {
        this.wait(problem.retryAfter || UNKNOWN_WAIT_SECONDS);
        await this.way.refused(problem);
        return;
      }
      this.change((all) => all.map((one) => (one.client_id === message.client_id ? { ...one, failed: true } : one)));
      await this.way.refused(problem);
    }
  }

  /** Count down to the next attempt. */
  private wait(seconds: number): void {
    this.resumeAt = Date.now() + seconds * 1_000;
    const tick = (): void => {
      clearTimeout(this.timer);
      if (this.waiting) this.timer = setTimeout(tick, 1_000);
      else void this.send();
      this.way.changed();
    };
    tick();
  }

  private change(update: (all: readonly Pending[]) => readonly Pending[]): void {
    this.pending = update(this.pending);
    // Includes the unsent messages of other tabs.
    this.memory.write({ pending: update(this.memory.read().pending ?? []) });
    this.way.changed();
  }
}
