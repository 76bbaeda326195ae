/** The site's colours as a style sheet. Only values that the browser parses as colours are used. */

export function themed(theme: Readonly<Record<string, string>>): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  const accent = theme['accent'] ?? '';
  if (!/^#[0-9a-f]{6}$/i.test(accent)) return sheet;
  const on = luminance(accent) > 0.19 ? '#111' : '#fff';
  sheet.replaceSync(`.frame { --accent: ${accent}; --on-accent: ${on}; } .launcher { background: ${accent}; } .launcher svg { fill: ${on}; }`);
  return sheet;
}

/** Relative luminance by WCAG 2. */
function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((place) => {
    const part = parseInt(colour.slice(place, place + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
