// Builds the two pages, each into a folder of ui/dist that is committed and embedded: the page of the server into `server`, and the
// page of the collector (`--mode collector`), which has only the pipeline, into `collector`.
// All addresses are relative (base './'), so that the same files work below any path prefix.
import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';
import solid from 'vite-plugin-solid';
import { PATHS } from './src/urls.ts';

/** Writes `views.json` for the server: the paths of the views below the base. */
const views = (): Plugin => ({
  name: 'views',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'views.json', source: `${JSON.stringify(PATHS)}\n` });
  },
});

/**
 * Adds the published speedscope in a folder of its own. It is a separate page that is loaded only when the user opens it. Its
 * examples and its reader of Java recordings are left out; the reader would need more rights than the Content-Security-Policy allows.
 */
const speedscope = (): Plugin => ({
  name: 'speedscope',
  generateBundle() {
    const release = new URL('node_modules/speedscope/dist/release/', import.meta.url);
    const names = readdirSync(release).filter((name) => /^speedscope-\w+\.(js|css)$|\.woff2$|^source-code-pro\.LICENSE\.md$/.test(name));
    const emit = (name: string, source: string | Uint8Array): void => void this.emitFile({ type: 'asset', fileName: `speedscope/${name}`, source });
    for (const name of names) emit(name, readFileSync(new URL(name, release)));
    emit('LICENSE', readFileSync(new URL('../../LICENSE', release)));
    const [script, style] = ['.js', '.css'].map((suffix) => names.find((name) => name.endsWith(suffix)) ?? this.error(`the speedscope package has no ${suffix} file`));
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
