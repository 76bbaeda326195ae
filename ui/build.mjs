// Bundles the widget into `static`. The loader carries the digest of the chat, so that browsers may keep both for good.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const common = {
  bundle: true,
  minify: true,
  target: ['es2022'],
  charset: 'utf8',
  legalComments: 'none',
  loader: { '.css': 'text' },
  logLevel: 'warning',
  // Style sheets are texts here, which esbuild leaves as they are.
  plugins: [
    {
      name: 'style-sheets',
      setup(bundler) {
        bundler.onLoad({ filter: /\.css$/ }, ({ path }) => ({
          loader: 'text',
          contents: readFileSync(path, 'utf8')
            .replace(/\/\*.*?\*\//gs, '')
            .replace(/\s+/g, ' ')
            .replace(/ ?([{};,>]) ?/g, '$1')
            .replace(/: /g, ':')
            .trim(),
        }));
      },
    },
  ],
};
const notice = (names) => ({ js: `/* ${names} */` });

mkdirSync('static', { recursive: true });
await build({
  ...common,
  entryPoints: ['src/chat.ts'],
  format: 'esm',
  outfile: 'static/chat.js',
  banner: notice('Opora, Apache-2.0. Contains lit-html (BSD-3-Clause), marked (MIT), eventsource-parser (MIT).'),
});
const digest = createHash('sha256').update(readFileSync('static/chat.js')).digest('hex').slice(0, 12);
await build({
  ...common,
  entryPoints: ['src/loader.ts'],
  format: 'iife',
  outfile: 'static/loader.js',
  define: { CHAT_VERSION: JSON.stringify(digest) },
  banner: notice('Opora, Apache-2.0'),
});

// The desk: its colours are the widget's, taken from where they stand.
const colours = [...readFileSync('src/chat.css', 'utf8').matchAll(/\.frame \{\s*((?:--[\w-]+: [^;]+;\s*)+)/g)].map(([, tokens]) => tokens);
if (colours.length !== 2) throw new Error('chat.css has colours for light and for dark');
const [light, dark] = colours;
writeFileSync(
  'src/desk/colours.css',
  `:root { ${light} }\n@media (prefers-color-scheme: dark) { :root { ${dark} } }\n`,
);
await build({
  ...common,
  entryPoints: ['src/desk/desk.ts', 'src/desk/all.css'],
  format: 'esm',
  outdir: 'static',
  entryNames: '[name]',
  loader: { '.css': 'css' },
  plugins: [],
  banner: { ...notice('Opora, Apache-2.0'), css: '/* Opora, Apache-2.0 */' },
});
renameSync('static/all.css', 'static/desk.css');
