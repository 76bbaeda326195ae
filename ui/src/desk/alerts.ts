/** Alerts: the number of waiting customers in the tab title, and sounds. */

const STORED = 'opora-desk:sound';
const WAITING = '[data-live="views"] [data-id="waiting"] .number, [data-live="count"] .number';
const TONES_HZ = [660, 880];
const TONE_SECONDS = 0.14;
const LOUDNESS = 0.08;

export class Alerts {
  private readonly title = document.title;
  private waiting = this.count();

  start(): void {
    for (const button of document.querySelectorAll<HTMLElement>('[data-sound]')) {
      show(button);
      button.addEventListener('click', () => {
        keep(!wanted());
        show(button);
        if (wanted()) ring();
      });
    }
    this.write();
  }

  /**
   * Update the alerts after a change on the page.
   * @param heard whether this tab plays sounds.
   * @param spoken whether a customer has written in the open chat.
   */
  changed(heard: boolean, spoken: boolean): void {
    const before = this.waiting;
    this.waiting = this.count();
    this.write();
    if (heard && wanted() && (this.waiting > before || spoken)) ring();
  }

  private count(): number {
    return Number(document.querySelector(WAITING)?.textContent ?? 0);
  }

  private write(): void {
    document.title = this.waiting ? `(${this.waiting}) ${this.title}` : this.title;
  }
}

function ring(): void {
  const context = new AudioContext();
  const loudness = context.createGain();
  loudness.gain.value = LOUDNESS;
  loudness.connect(context.destination);
  TONES_HZ.forEach((pitch, place) => {
    const tone = context.createOscillator();
    tone.frequency.value = pitch;
    tone.connect(loudness);
    tone.start(context.currentTime + place * TONE_SECONDS);
    tone.stop(context.currentTime + (place + 1) * TONE_SECONDS);
    if (place === TONES_HZ.length - 1) tone.onended = () => void context.close();
  });
}

function show(button: HTMLElement): void {
  button.setAttribute('aria-pressed', String(wanted()));
}

function wanted(): boolean {
  try {
    return localStorage.getItem(STORED) === 'on';
  } catch {
    return false;
  }
}

function keep(on: boolean): void {
  try {
    localStorage.setItem(STORED, on ? 'on' : 'off');
  } catch {
    // Without storage, sounds stay off.
  }
}
