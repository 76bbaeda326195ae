/**
 * Merge the changes of a reloaded page.
 *
 * Regions are named by `data-live`, their parts by `data-id`. An unchanged part keeps its element,
 * with its focus, position and opened details, so the page does not jump on changes elsewhere.
 */

import { writeTimes } from './times';

/** Parts as sent by the service, before scripts wrote times into them or the reader opened them. */
const sent = new WeakMap<Element, string>();

interface Policies {
  createPolicy(name: string, rules: { createHTML(html: string): string }): { createHTML(html: string): unknown };
}
const policies = (window as unknown as { trustedTypes?: Policies }).trustedTypes;
const policy = policies?.createPolicy('opora-desk', { createHTML: (html) => html });

/** Parse a page of this service. Its templates have escaped all text; as a separate document, it runs no scripts. */
export function parsed(html: string): Document {
  return new DOMParser().parseFromString((policy ? policy.createHTML(html) : html) as string, 'text/html');
}

export function remember(within: ParentNode): void {
  for (const part of within.querySelectorAll('[data-live] > [data-id]')) sent.set(part, part.outerHTML);
}

/** Return whether a region changed, by the region's name. */
export function merge(fresh: Document): ReadonlySet<string> {
  const changed = new Set<string>();
  for (const region of document.querySelectorAll<HTMLElement>('[data-live]')) {
    const name = region.dataset['live']!;
    const next = fresh.querySelector<HTMLElement>(`[data-live="${name}"]`);
    if (next && mergeRegion(region, next)) changed.add(name);
  }
  return changed;
}

function mergeRegion(region: HTMLElement, next: HTMLElement): boolean {
  const known = new Map(parts(region).map((part) => [part.dataset['id']!, part]));
  let changed = false;
  let place: Element | null = region.firstElementChild;
  for (const part of parts(next)) {
    const html = part.outerHTML;
    const old = known.get(part.dataset['id']!);
    known.delete(part.dataset['id']!);
    let kept = old;
    if (!old || sent.get(old) !== html) {
      changed = true;
      kept = document.importNode(part, true);
      sent.set(kept, html);
      writeTimes(kept);
      for (const one of kept.querySelectorAll<HTMLElement>('[data-needs-script]')) one.hidden = false;
      if (old) {
        const focused = focusables(old).indexOf(document.activeElement as HTMLElement);
        if (place === old) place = old.nextElementSibling;
        old.replaceWith(kept);
        if (focused >= 0) focusables(kept)[focused]?.focus({ preventScroll: true });
      }
    }
    if (kept === place) place = place!.nextElementSibling;
    else if (!old || kept!.nextElementSibling !== place) {
      const active = kept!.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
      region.insertBefore(kept!, place);
      active?.focus({ preventScroll: true });
    }
  }
  for (const gone of known.values()) {
    changed = true;
    gone.remove();
  }
  for (const { name, value } of next.attributes) if (name.startsWith('data-')) region.setAttribute(name, value);
  return changed;
}

function parts(region: Element): HTMLElement[] {
  return [...region.children].filter((one): one is HTMLElement => one instanceof HTMLElement || 'dataset' in one).filter((one) => one.dataset['id']);
}

function focusables(within: HTMLElement): HTMLElement[] {
  return [...within.querySelectorAll<HTMLElement>('a[href], button, select, input, summary')];
}
