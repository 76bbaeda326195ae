/** A checkbox that ticks all rows of a list. */
export function offerSelecting(): void {
  const all = document.querySelector<HTMLInputElement>('[data-selects]');
  if (!all) return;
  const rows = [...document.querySelectorAll<HTMLInputElement>(`input[name="${all.dataset['selects']}"][type=checkbox]`)];
  all.addEventListener('change', () => {
    for (const row of rows) row.checked = all.checked;
  });
  for (const row of rows) row.addEventListener('change', () => (all.checked = rows.every((one) => one.checked)));
}
