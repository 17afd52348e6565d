// Login, logout, and whether the server requires a login. The browser holds the session cookie, which scripts cannot see. The page
// requests the session only after a response with 401, or for the view that explains how to send profiles. So a server without
// authentication receives few requests for a session.

import { createSignal } from 'solid-js';
import { BASE } from './base.ts';
import { recall, remember } from './stored.ts';

const KEY = 'session';
const [wanted, setWanted] = createSignal(false);
const [open, setOpen] = createSignal(recall(KEY) === 'open');

/** True if the server requires authentication and the user is not logged in. */
export const loginWanted = wanted;
/** True after a login in this browser, until the logout. */
export const loggedIn = open;

let asking: Promise<void> | undefined;

/** After a 401, requests the session to find out whether a login would help, because a missing tenant is also a 401. */
export function noteRefusal(): Promise<void> {
  asking ??= ask().finally(() => (asking = undefined));
  return asking;
}

async function ask(): Promise<void> {
  const session = await readSession();
  if (session) setWanted(session.asks && session.identity === null);
}

/** Returns the session; undefined for servers without sessions, such as other Pyroscope-compatible servers. */
async function readSession(signal?: AbortSignal): Promise<{ asks: boolean; identity: unknown } | undefined> {
  const answer = await fetch(`${BASE}api/v1/session`, { signal: signal ?? null }).catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as { asks: boolean; identity: unknown }) : undefined;
}

/** Whether the server requires authentication. */
export const asksWhoCalls = async (signal?: AbortSignal): Promise<boolean> => (await readSession(signal))?.asks === true;

function note(next: 'open' | 'closed'): void {
  remember(KEY, next);
  setOpen(next === 'open');
}

/** Logs in; without a user, the password is a token. Returns the text of a refusal, or undefined. */
export async function login(user: string, password: string): Promise<string | undefined> {
  const body = JSON.stringify(user ? { user, password } : { password });
  const answer = await fetch(`${BASE}api/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).catch(() => undefined);
  if (!answer) return 'cannot reach the server; check that it runs and that the network is up';
  if (!answer.ok) {
    const refusal = (await answer.json().catch(() => ({}))) as { message?: string };
    return refusal.message ?? `the response has status ${answer.status}`;
  }
  note('open');
  return undefined;
}

/** Logs out and reloads the page, which shows the login. */
export async function logout(): Promise<void> {
  const answer = await fetch(`${BASE}api/v1/logout`, { method: 'POST' }).catch(() => undefined);
  if (!answer?.ok) return;
  note('closed');
  location.reload();
}
