/** Event streams that also go on after a refusal: an `EventSource` reconnects by itself only after a lost connection. */

const AGAIN_MS = 5_000;

/** Open a stream until the page is left; `listen` adds the listeners to each `EventSource` that is opened for it. */
export function follow(path: string, listen: (stream: EventSource) => void): void {
  let stream: EventSource;
  let again = 0;
  const open = (): void => {
    stream = new EventSource(path);
    stream.addEventListener('error', () => {
      if (stream.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS * (1 + Math.random()));
    });
    listen(stream);
  };
  open();
  addEventListener('pagehide', () => {
    clearTimeout(again);
    stream.close();
  });
}
