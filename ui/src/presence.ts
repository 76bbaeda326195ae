/** Typing and presence in both directions, between people only: the assistant shows its own progress. */

const SHOWN_MS = 6_000;
const SENT_EVERY_MS = 3_000;

export class Presence {
  /** Names of the operators who are typing and reading. */
  typing = '';
  looking = '';
  private timer = 0;
  private sentAt = 0;

  constructor(
    private readonly send: (active: boolean) => void,
    private readonly changed: () => void,
  ) {}

  receive(kind: 'typing' | 'presence', name: string): void {
    if (kind === 'presence') {
      this.looking = name;
      return;
    }
    this.typing = name;
    clearTimeout(this.timer);
    // An operator who closes the page sends no "stopped typing" signal.
    if (name) this.timer = setTimeout(() => this.stop(), SHOWN_MS);
  }

  /** Report that the customer is typing, but not for every key. */
  typed(active: boolean): void {
    const now = Date.now();
    if (active ? now - this.sentAt < SENT_EVERY_MS : !this.sentAt) return;
    this.sentAt = active ? now : 0;
    this.send(active);
  }

  private stop(): void {
    this.typing = '';
    this.changed();
  }
}
