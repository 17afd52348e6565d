// Starts and stops the program for tests against a real server. ALLUVIUM_BIN names the program (default: target/debug/alluvium, where cargo puts it).

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const program = process.env.ALLUVIUM_BIN || join(process.env.CARGO_TARGET_DIR || join(ROOT, 'target'), 'debug', 'alluvium');
const STOP_MS = 20_000;
/** Number of lines of the program's log that are kept for error messages. */
const LOG_LINES = 40;
const START_MS = 60_000;
/** The log lines in which the demo and a collector report their address. */
const LISTENS = /(?:http:\/\/|address=)(127\.0\.0\.1:\d+)/;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Creates a folder that is removed when this process ends. */
export async function temporary() {
  const folder = await mkdtemp(join(tmpdir(), 'alluvium-page-'));
  process.once('beforeExit', () => void rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts the program. `address` is empty until the program reports its address: with port 0, the system assigns a free port. */
export function start(args, cwd) {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const running = { log: [], address: '', ended: '', process: child, gone: null };
  const keep = (line) => {
    running.address ||= LISTENS.exec(line)?.[1] ?? '';
    running.log.push(line);
    running.log.splice(0, running.log.length - LOG_LINES);
  };
  createInterface(child.stdout).on('line', keep);
  createInterface(child.stderr).on('line', keep);
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

/** Waits until the program has reported its address, and returns its URL. */
export async function listening(running) {
  for (const deadline = Date.now() + START_MS; !running.address; await sleep(20)) {
    if (running.ended) throw new Error(`the program ended ${running.ended}:\n${running.log.join('\n')}`);
    if (Date.now() > deadline) throw new Error(`the program has not reported its address:\n${running.log.join('\n')}`);
  }
  return `http://${running.address}/`;
}

/** Sends SIGTERM to the program, and kills the program if it does not end in time. Returns true if it ended with code 0 after SIGTERM. */
export async function stop(running) {
  if (running.ended) return false;
  running.process.kill('SIGTERM');
  await Promise.race([running.gone, sleep(STOP_MS)]);
  if (running.ended) return running.ended === 'with code 0';
  running.process.kill('SIGKILL');
  await running.gone;
  return false;
}
