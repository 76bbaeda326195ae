/** How to reach the customer after they have left the chat. */

import { html, type TemplateResult } from 'lit-html';
import type { Conversation } from './conversation';

export function contact(conversation: Conversation): TemplateResult {
  const { say } = conversation.texts;
  return html`<form
    class="contact"
    @submit=${(event: Event) => {
      event.preventDefault();
      const field = (event.target as HTMLFormElement).elements.namedItem('contact') as HTMLInputElement;
      if (field.value.trim()) void conversation.leaveContact(field.value.trim());
    }}
  >
    <label for="opora-contact">${say('contact_hint')}</label>
    <div class="row">
      <input id="opora-contact" name="contact" type="text" maxlength="200" autocomplete="email" placeholder=${say('contact')} />
      <button type="submit" class="action">${say('contact_send')}</button>
    </div>
  </form>`;
}
