/** Keyboard shortcuts: a key clicks, opens or focuses its element, unless the focus is in a text field. */

const WRITTEN_IN = 'input, textarea, select, [contenteditable]';
/** The same keys on a Russian keyboard. */
const RUSSIAN: Readonly<Record<string, string>> = { о: 'j', л: 'k', е: 't', к: 'r', т: 'n', с: 'c', и: 'b', я: 'z', у: 'e', п: 'g', г: 'u', ф: 'a', ш: 'i' };

export function listen(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target as Element;
    if (event.key === 'Escape' && target.matches('textarea, [type="search"]')) (target as HTMLElement).blur();
    // A dialog that has just been closed keeps the focus until the next frame.
    if (target.closest(WRITTEN_IN) || target.closest('dialog[open]')) return;
    const key = pressed(event);
    if ((key === 'j' || key === 'k') && move(key === 'j' ? 1 : -1)) event.preventDefault();
    const one = [...document.querySelectorAll<HTMLElement>('[data-hotkey]')].find((each) => each.dataset['hotkey'] === key && each.checkVisibility());
    if (!one) return;
    event.preventDefault();
    if (one.matches(WRITTEN_IN)) one.focus();
    else one.click();
    if (one.matches('summary')) one.focus();
  });
}

function pressed(event: KeyboardEvent): string {
  const key = event.key.toLowerCase();
  // The full stop and comma of Russian keyboards are on the key of slash and question mark on Latin ones.
  if (event.code === 'Slash' && (key === '.' || key === ',')) return key === ',' ? '?' : '/';
  return RUSSIAN[key] ?? key;
}

function move(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-list] a')].filter((row) => row.checkVisibility());
  const current = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[current < 0 ? (by > 0 ? 0 : rows.length - 1) : current + by];
  next?.focus();
  return next !== undefined;
}
