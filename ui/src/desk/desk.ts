/** Live updates of the desk's pages. Without this script, everything is readable and every button works. */

import { Composer } from './composer';
import { offerCopying } from './copying';
import { listen } from './keys';
import { Live } from './live';
import { remember } from './merge';
import { follow } from './polling';
import { offerSelecting } from './selecting';
import { writeTimes } from './times';
import { followJob, watchUploads } from './uploads';

remember(document);
writeTimes(document);
setInterval(() => writeTimes(document), 30_000);
for (const one of document.querySelectorAll<HTMLElement>('[data-needs-script]')) one.hidden = false;
// Scroll a menu that is wider than the screen to the current entry.
for (const one of document.querySelectorAll('nav [aria-current]')) {
  const menu = one.parentElement!;
  menu.scrollLeft += one.getBoundingClientRect().left - menu.getBoundingClientRect().left - 24;
}
document.addEventListener('click', ({ target }) => {
  const opener = target instanceof Element ? target.closest<HTMLElement>('[data-opens]') : null;
  if (opener) (document.getElementById(opener.dataset['opens']!) as HTMLDialogElement).showModal();
});
listen();
follow();
offerCopying();
offerSelecting();
watchUploads();
followJob();

// Show elapsed seconds for forms with slow responses.
for (const form of document.querySelectorAll<HTMLFormElement>('form[data-waits]')) {
  form.addEventListener('submit', () => {
    const status = form.querySelector<HTMLElement>('[data-working]')!;
    const started = Date.now();
    const count = (): void => {
      const seconds = Math.floor((Date.now() - started) / 1_000);
      status.textContent = status.dataset['working']!.replace('{seconds}', String(seconds));
    };
    form.setAttribute('aria-busy', 'true');
    status.hidden = false;
    count();
    const timer = setInterval(count, 1_000);
    const done = (): void => {
      clearInterval(timer);
      status.hidden = true;
      form.removeAttribute('aria-busy');
    };
    addEventListener('pageshow', done, { once: true }); // Navigating back restores the page from the cache.
  });
}

const page = document.querySelector<HTMLElement>('[data-page]');
if (page) {
  const live = new Live(page.dataset['chat'] ?? '');
  live.start();
  if (page.dataset['page'] === 'chat') new Composer(page.dataset['chat']!, live).start();
}
