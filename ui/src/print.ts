/** Printing of the conversation in a separate window, because the widget cannot hide the host page. */

/**
 * Print a copy of the messages. Returns false if no window may be opened, as in frames.
 *
 * Nodes are copied and styled by a constructed sheet: the new page inherits the policy of its opener, which may
 * forbid styles and strings of HTML.
 */
export function print(messages: Element, title: string, styles: string, locale: string): boolean {
  const page = window.open('', '', 'width=820,height=900');
  if (!page) return false;
  const { document: paper } = page;
  paper.title = title;
  paper.documentElement.lang = locale;
  const heading = paper.createElement('h1');
  heading.textContent = title;
  const frame = paper.createElement('main');
  frame.className = 'frame paper';
  frame.append(heading, paper.importNode(messages, true));
  for (const folded of frame.querySelectorAll('details')) folded.open = true;
  const sheet = new (page as Window & typeof globalThis).CSSStyleSheet();
  sheet.replaceSync(styles);
  paper.adoptedStyleSheets = [sheet];
  paper.body.append(frame);
  page.addEventListener('afterprint', () => page.close());
  page.print();
  return true;
}
