// Starts and stops the program for tests against the real thing. ALLUVIUM_BIN names it (else target/debug/alluvium, as cargo builds it).

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const program = process.env.ALLUVIUM_BIN || join(process.env.CARGO_TARGET_DIR || join(ROOT, 'target'), 'debug', 'alluvium');
const STOP_MS = 20_000;
/** Lines of the program's log that are kept for when it is to blame. */
const LOG_LINES = 40;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function freePort() {
  const probe = createServer();
  await new Promise((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** A folder that is removed when this process ends. */
export async function temporary() {
  const folder = await mkdtemp(join(tmpdir(), 'alluvium-page-'));
  process.once('beforeExit', () => void rm(folder, { recursive: true, force: true }));
  return folder;
}

export function start(args, cwd) {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const running = { log: [], ended: '', process: child, gone: null };
  const keep = (chunk) => {
    running.log.push(...String(chunk).split('\n').filter(Boolean));
    running.log.splice(0, running.log.length - LOG_LINES);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  running.gone = new Promise((resolve) => {
    const end = (how) => {
      running.ended ||= how;
      resolve();
    };
    child.once('error', (error) => end(error.message));
    child.once('exit', (code, signal) => end(signal ? `by ${signal}` : `with code ${code}`));
  });
  return running;
}

/** Asks the program to end, and makes it end when it does not; true when it ended as it should. */
export async function stop(running) {
  if (running.ended) return false;
  running.process.kill('SIGTERM');
  await Promise.race([running.gone, sleep(STOP_MS)]);
  if (running.ended) return running.ended === 'with code 0';
  running.process.kill('SIGKILL');
  await running.gone;
  return false;
}
