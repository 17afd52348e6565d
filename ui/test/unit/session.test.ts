import { afterEach, describe, expect, it, vi } from 'vitest';
import { labelNames } from '../../src/lib/api.ts';
import { asksWhoCalls, loggedIn, login, loginWanted, noteRefusal } from '../../src/lib/session.ts';

afterEach(() => vi.unstubAllGlobals());

/** Stubs a server. Each key of `answers` is the end of a path, and its value is the response to requests for that path. Returns the requests that the server receives. */
function server(answers: Record<string, [number, unknown]>): string[] {
  const sent: string[] = [];
  vi.stubGlobal('fetch', async (url: string, options?: { body?: string }) => {
    sent.push(`${url} ${options?.body ?? ''}`.trim());
    const [status, body] = Object.entries(answers).find(([path]) => url.endsWith(path))?.[1] ?? [404, {}];
    return new Response(status === 204 ? null : JSON.stringify(body), { status });
  });
  return sent;
}

const nobody = { asks: true, identity: null, logged_in: false };

describe('the session', () => {
  it('is requested after a 401, and a login is needed if the server does not know the user', async () => {
    server({ LabelNames: [401, { code: 'unauthenticated', message: 'authentication required' }], session: [200, nobody] });
    await expect(labelNames('{}', { start: 0, end: 1 })).rejects.toThrow('authentication required');
    await noteRefusal();
    expect(loginWanted()).toBe(true);
  });

  it('needs no login if the server requires none, or if the user is logged in and only the tenant is missing', async () => {
    for (const session of [{ ...nobody, asks: false }, { ...nobody, identity: { name: 'ada' } }]) {
      server({ session: [200, session] });
      await noteRefusal();
      expect(loginWanted()).toBe(false);
    }
  });

  it('shows whether the server requires authentication; a server without sessions requires none', async () => {
    server({ session: [200, { ...nobody, identity: { name: 'ada' } }] });
    expect(await asksWhoCalls()).toBe(true);
    server({ session: [200, { ...nobody, asks: false }] });
    expect(await asksWhoCalls()).toBe(false);
    server({});
    expect(await asksWhoCalls()).toBe(false);
  });

  it('begins with a user and a password, or with a token alone', async () => {
    const refused = server({ login: [401, { message: 'not valid' }] });
    expect(await login('ada', 'wrong')).toBe('not valid');
    expect(loggedIn()).toBe(false);
    expect(refused[0]).toContain('{"user":"ada","password":"wrong"}');
    const taken = server({ login: [204, null] });
    expect(await login('', 'allu_token')).toBeUndefined();
    expect(taken[0]).toContain('api/v1/login {"password":"allu_token"}');
    expect(loggedIn()).toBe(true);
  });
});
