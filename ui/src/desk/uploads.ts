/** Document upload: progress of the upload and of the ingestion. */

import { Live } from './live';
import { parsed } from './merge';
import { follow } from './stream';

/** Submit file forms with a progress display. Without this script they are submitted as usual. */
export function watchUploads(): void {
  for (const form of document.querySelectorAll<HTMLFormElement>('form[data-upload]')) {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      send(form);
    });
  }
}

/** Reload the page as its job progresses. */
export function followJob(): void {
  const job = document.querySelector<HTMLElement>('[data-job]')?.dataset['job'];
  if (!job) return;
  const live = new Live('');
  follow(`/jobs/${job}/events`, (events) => {
    events.addEventListener('progress', () => void live.load());
    events.addEventListener('done', () => {
      events.close();
      void live.load();
    });
  });
}

function send(form: HTMLFormElement): void {
  const files = [...form.querySelector<HTMLInputElement>('input[type="file"]')!.files!];
  if (files.reduce((sum, file) => sum + file.size, 0) > Number(form.dataset['limit'])) {
    show(form, form.dataset['tooLarge']!);
    return;
  }
  const button = form.querySelector('button')!;
  const sending = form.querySelector<HTMLElement>('[data-upload-sending]')!;
  const request = new XMLHttpRequest();
  const free = (words: string): void => {
    button.disabled = false;
    sending.hidden = true;
    show(form, words);
  };
  show(form, '');
  button.disabled = true;
  sending.hidden = false;
  sending.querySelector('[role="status"]')!.textContent = form.dataset['sending']!;
  request.upload.addEventListener('progress', ({ loaded, total }) => {
    sending.querySelector('progress')!.value = total ? (100 * loaded) / total : 0;
  });
  request.addEventListener('load', () => {
    if (request.status < 400) {
      // The redirect target, which may be this page.
      if (request.responseURL === location.href) location.reload();
      else location.assign(request.responseURL);
      return;
    }
    const page = parsed(request.responseText);
    free((page.getElementById('fault') ?? page.querySelector('h1 + p') ?? page.querySelector('h1'))?.textContent ?? '');
  });
  request.addEventListener('error', () => free(form.dataset['broken']!));
  request.open('POST', form.action);
  request.setRequestHeader('x-csrf-token', document.querySelector<HTMLMetaElement>('meta[name="csrf"]')!.content);
  request.setRequestHeader('accept', 'text/html');
  request.send(new FormData(form));
}

function show(form: HTMLFormElement, words: string): void {
  const fault = form.querySelector<HTMLElement>('[data-upload-fault]')!;
  fault.textContent = words;
  fault.hidden = !words;
}
