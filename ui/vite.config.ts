// Builds the page into ui/dist, which is committed and embedded in the server.
// Everything is relative (base './'), so that the same files work under any path prefix.
import { defineConfig } from 'vite';
import solid from 'vite-plugin-solid';

export default defineConfig({
  base: './',
  plugins: [solid()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    assetsDir: 'assets',
    // A strict Content-Security-Policy does not load data: URLs, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: { '/querier.v1.QuerierService': process.env.BACKEND ?? 'http://127.0.0.1:4040' },
  },
  test: { include: ['test/unit/**/*.test.ts'], environment: 'node' },
} as Parameters<typeof defineConfig>[0]);
