// Builds the two pages, each into a folder of ui/dist that is committed and embedded: the server's into `server`, the collector's
// (`--mode collector`), which has the pipeline only, into `collector`.
// Everything is relative (base './'), so that the same files work under any path prefix.
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

export default defineConfig(({ mode }) => ({
  base: './',
  plugins: [solid(), ...(mode === 'collector' ? [] : [views()])],
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
      '/api/v0': process.env.COLLECTOR ?? process.env.BACKEND ?? 'http://127.0.0.1:12345',
    },
  },
  test: { include: ['test/unit/**/*.test.ts'], environment: 'node', env: { TZ: 'Asia/Kolkata' } },
}));
      '/api/v1': process.env.BACKEND ?? 'http://127.0.0.1:4040',
      '/adhocprofiles.v1.AdHocProfileService': process.env.BACKEND ?? 'http://127.0.0.1:4040',
