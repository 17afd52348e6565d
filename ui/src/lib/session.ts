// Who looks at the page: login, logout, and whether the server wants one. The cookie of the session is the browser's;
// scripts do not see it. Nothing is asked before an answer was 401 or somebody looks how to send, so that a server that asks
// nobody is not asked either.

import { createSignal } from 'solid-js';
import { BASE } from './base.ts';
import { recall, remember } from './stored.ts';

const KEY = 'session';
const [wanted, setWanted] = createSignal(false);
const [open, setOpen] = createSignal(recall(KEY) === 'open');

/** The server asks who calls, and does not know us. */
export const loginWanted = wanted;
/** A login has worked here, and no logout since. */
export const loggedIn = open;

let asking: Promise<void> | undefined;

/** An answer was 401: finds out whether a login would help. A missing tenant is 401, too. */
export function noteRefusal(): Promise<void> {
  asking ??= ask().finally(() => (asking = undefined));
  return asking;
}

async function ask(): Promise<void> {
  const session = await readSession();
  if (session) setWanted(session.asks && session.identity === null);
}

/** Nothing where the server has no sessions, as other servers have not. */
async function readSession(signal?: AbortSignal): Promise<{ asks: boolean; identity: unknown } | undefined> {
  const answer = await fetch(`${BASE}api/v1/session`, { signal: signal ?? null }).catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as { asks: boolean; identity: unknown }) : undefined;
}

/** Whether who sends has to say who it is. */
export const asksWhoCalls = async (signal?: AbortSignal): Promise<boolean> => (await readSession(signal))?.asks === true;

function note(next: 'open' | 'closed'): void {
  remember(KEY, next);
  setOpen(next === 'open');
}

/** Logs in, with a token when there is no user; the text of the refusal, or nothing. */
export async function login(user: string, password: string): Promise<string | undefined> {
  const body = JSON.stringify(user ? { user, password } : { password });
  const answer = await fetch(`${BASE}api/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).catch(() => undefined);
  if (!answer) return 'the server does not answer; is it running, and is the network up?';
  if (!answer.ok) {
    const refusal = (await answer.json().catch(() => ({}))) as { message?: string };
    return refusal.message ?? `the answer was status ${answer.status}`;
  }
  note('open');
  return undefined;
}

/** Logs out and asks for a new login. */
export async function logout(): Promise<void> {
  const answer = await fetch(`${BASE}api/v1/logout`, { method: 'POST' }).catch(() => undefined);
  if (!answer?.ok) return;
  note('closed');
  location.reload();
}
