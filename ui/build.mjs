// Bundles the widget into `static`. The loader carries the digest of the chat, so that browsers may keep both for good.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
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
