/** Moments in the reader's own time zone and manner. */

const locale = document.documentElement.lang;
const full = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' });

export function writeTimes(within: ParentNode): void {
  for (const one of within.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const moment = new Date(one.dateTime);
    one.textContent = (one.dataset['form'] === 'day' ? day : full).format(moment);
    one.title = full.format(moment);
  }
}
