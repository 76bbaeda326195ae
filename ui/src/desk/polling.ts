/** Polling of background work: reload the page until the work has ended. A hidden tab waits until it is shown. */

import { merge, parsed } from './merge';

const EVERY_MS = 1_000;

export function follow(): void {
  if (!document.querySelector('[data-polls]')) return;
  setTimeout(() => void look(), EVERY_MS);
}

async function look(): Promise<void> {
  if (document.visibilityState === 'hidden') {
    document.addEventListener('visibilitychange', () => void look(), { once: true });
    return;
  }
  try {
    const response = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (response.redirected) {
      location.reload();
      return;
    }
    if (response.ok) {
      const fresh = parsed(await response.text());
      merge(fresh);
      if (!fresh.querySelector('[data-polls]')) return;
    }
  } catch {
    // The service is temporarily unreachable.
  }
  setTimeout(() => void look(), EVERY_MS);
}
