/** Who types and who looks, both ways. Only people are shown to each other: the assistant shows what it does itself. */

const SHOWN_MS = 6_000;
const SENT_EVERY_MS = 3_000;

export class Presence {
  /** The name of whoever types to the customer, and of whoever reads. */
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
    // Whoever closes their page says nothing any more.
    if (name) this.timer = setTimeout(() => this.stop(), SHOWN_MS);
  }

  /** The customer writes: said not at every key. */
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
