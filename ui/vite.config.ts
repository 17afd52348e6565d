// Builds the two pages, each into a folder of ui/dist that is committed and embedded: the server's into `server`, the collector's
// (`--mode collector`), which has the pipeline only, into `collector`.
// Everything is relative (base './'), so that the same files work under any path prefix.
import { defineConfig } from 'vite';
import solid from 'vite-plugin-solid';

export default defineConfig(({ mode }) => ({
  base: './',
  plugins: [solid()],
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
  test: { include: ['test/unit/**/*.test.ts'], environment: 'node' },
}));
