/** Buttons that copy what stands beside them: a secret that is shown once, the line for a site's pages. */

export function offerCopying(): void {
  document.addEventListener('click', async ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>('[data-copy]') : null;
    if (!button) return;
    const source = document.getElementById(button.dataset['copy']!)!;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = button.dataset['done']!;
    } catch {
      // Browsers refuse it outside of secure pages: what is selected can be copied by hand.
      getSelection()!.selectAllChildren(source);
    }
  });
}
