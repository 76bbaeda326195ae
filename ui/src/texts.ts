/** Texts and numbers in the customer's language. */

import type { Config } from './contract';
import en from './locales/en.json';
import ru from './locales/ru.json';

export type Key = keyof typeof ru;
type Values = Readonly<Record<string, string | number>>;

const LOCALES: Record<string, Record<Key, string>> = { ru, en };
const RIGHT_TO_LEFT = new Set(['ar', 'fa', 'he', 'ur']);

export class Texts {
  constructor(private readonly config: Pick<Config, 'locale'>) {}

  /** English, while the site's own language is not known. */
  get locale(): string {
    return this.config.locale || 'en';
  }

  private get texts(): Record<Key, string> {
    return LOCALES[this.locale] ?? en;
  }

  get direction(): 'ltr' | 'rtl' {
    return RIGHT_TO_LEFT.has(this.locale) ? 'rtl' : 'ltr';
  }

  say = (key: Key, values: Values = {}): string =>
    this.texts[key].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));

  /** Format a waiting time. */
  wait = (seconds: number): string => {
    if (seconds <= 90) return this.say('wait_s', { count: seconds });
    const minutes = Math.ceil(seconds / 60);
    return minutes <= 90 ? this.say('wait_min', { count: minutes }) : this.say('wait_h', { count: Math.ceil(minutes / 60) });
  };

  has = (key: string): boolean => key in this.texts;

  number = (value: number, decimals = 0): string => value.toLocaleString(this.locale, { maximumFractionDigits: decimals });

  time = (stamp: string): string => {
    const date = new Date(stamp);
    if (Number.isNaN(date.valueOf())) return '';
    const today = date.toDateString() === new Date().toDateString();
    const day: Intl.DateTimeFormatOptions = today ? {} : { day: 'numeric', month: 'short' };
    const hour = this.locale === 'en' ? 'numeric' : '2-digit';
    return date.toLocaleString(this.locale, { ...day, hour, minute: '2-digit' });
  };

  date = (stamp: string): string => {
    const date = new Date(stamp);
    return Number.isNaN(date.valueOf()) ? '' : date.toLocaleDateString(this.locale, { dateStyle: 'medium' });
  };

  /** Format a size. A megabyte has a million bytes, as in the settings at the desk. */
  size = (bytes: number): string => {
    if (bytes < 1_000) return this.say('size_b', { size: bytes });
    if (bytes < 1_000_000) return this.say('size_kb', { size: Math.round(bytes / 1_000) });
    return this.say('size_mb', { size: this.number(bytes / 1_000_000, 1) });
  };
}
