/** Copy buttons: a secret that is shown once, the snippet for a site's pages. */

export function offerCopying(): void {
  document.addEventListener('click', async ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>('[data-copy]') : null;
    if (!button) return;
    const source = document.getElementById(button.dataset['copy']!)!;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = button.dataset['done']!;
    } catch {
      // Browsers reject this on insecure pages: the selected text can be copied manually.
      getSelection()!.selectAllChildren(source);
    }
  });
}
