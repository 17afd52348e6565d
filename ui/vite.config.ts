// Builds the two pages, each into a folder of ui/dist that is committed and embedded: the server's into `server`, the collector's
// (`--mode collector`), which has the pipeline only, into `collector`.
// Everything is relative (base './'), so that the same files work under any path prefix.
import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';
import solid from 'vite-plugin-solid';
import { PATHS } from './src/urls.ts';

/** Tells the server which paths are views: `views.json`, the paths below the base. */
const views = (): Plugin => ({
  name: 'views',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'views.json', source: `${JSON.stringify(PATHS)}\n` });
  },
});

/**
 * speedscope as it was published, in a folder of its own: a page beside ours, of which nothing is loaded before somebody opens
 * it. Without its examples and its reader of Java's recordings, which would need more rights than our policy gives.
 */
const speedscope = (): Plugin => ({
  name: 'speedscope',
  generateBundle() {
    const release = new URL('node_modules/speedscope/dist/release/', import.meta.url);
    const names = readdirSync(release).filter((name) => /^speedscope-\w+\.(js|css)$|\.woff2$|^source-code-pro\.LICENSE\.md$/.test(name));
    const emit = (name: string, source: string | Uint8Array): void => void this.emitFile({ type: 'asset', fileName: `speedscope/${name}`, source });
    for (const name of names) emit(name, readFileSync(new URL(name, release)));
    emit('LICENSE', readFileSync(new URL('../../LICENSE', release)));
    const [script, style] = ['.js', '.css'].map((suffix) => names.find((name) => name.endsWith(suffix)) ?? this.error(`speedscope has no ${suffix}`));
    emit('index.html', `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>speedscope</title>
    <link rel="icon" type="image/svg+xml" href="../favicon.svg" />
    <link rel="stylesheet" href="${style}" />
  </head>
  <body>
    <script src="${script}"></script>
  </body>
</html>
`);
  },
});

export default defineConfig(({ mode }) => ({
  base: './',
  plugins: [solid(), ...(mode === 'collector' ? [] : [views(), speedscope()])],
  build: {
    target: 'es2022',
    outDir: mode === 'collector' ? 'dist/collector' : 'dist/server',
    emptyOutDir: true,
    assetsDir: 'assets',
    // A strict Content-Security-Policy does not load data: URLs, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: mode === 'collector' ? 'collector.html' : 'index.html' },
  },
  server: {
    proxy: {
      '/querier.v1.QuerierService': process.env.BACKEND ?? 'http://127.0.0.1:4040',
      '/api/v1': process.env.BACKEND ?? 'http://127.0.0.1:4040',
      '/capabilities.v1.FeatureFlagsService': process.env.BACKEND ?? 'http://127.0.0.1:4040',
      '/settings.v1.SettingsService': process.env.BACKEND ?? 'http://127.0.0.1:4040',
      '/adhocprofiles.v1.AdHocProfileService': process.env.BACKEND ?? 'http://127.0.0.1:4040',
      '/api/v0': process.env.COLLECTOR ?? process.env.BACKEND ?? 'http://127.0.0.1:12345',
    },
  },
  test: { include: ['test/unit/**/*.test.ts'], environment: 'node', env: { TZ: 'Asia/Kolkata' } },
}));
