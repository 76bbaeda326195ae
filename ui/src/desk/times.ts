/** Times in the reader's time zone and format. */

const locale = document.documentElement.lang;
const full = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' });
const time = new Intl.DateTimeFormat(locale, { timeStyle: 'short' });
const ago = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

export function writeTimes(within: ParentNode): void {
  for (const one of within.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const moment = new Date(one.dateTime);
    const words = written(moment, one.dataset['form'] ?? '');
    if (one.textContent !== words) one.textContent = words;
    one.title = full.format(moment);
  }
}

function written(moment: Date, form: string): string {
  if (form === 'day') return day.format(moment);
  if (form === 'time' && moment.toDateString() === new Date().toDateString()) return time.format(moment);
  if (form !== 'ago') return full.format(moment);
  const seconds = (Date.now() - moment.getTime()) / 1_000;
  if (seconds < 60) return document.body.dataset['now'] ?? '';
  const [unit, length] = UNITS.find(([, size]) => seconds >= size) ?? ['minute', 60];
  return ago.format(-Math.floor(seconds / length), unit);
}
