import { describe, expect, it } from 'vitest';
import { collectorHealth, growth, readSenders, readSettings, readStorage } from '../../src/models/status.ts';

describe('the responses of the status routes', () => {
  it('have tables and days; the mean growth excludes the newest day, which is incomplete', () => {
    const row = (key: string, name: string, bytes: number) => ({ [key]: name, files: 1, bytes, rows: 10 });
    const storage = readStorage({ tables: [row('table', 'profiles', 5)], days: [row('day', '2026-11-21', 100), row('day', '2026-11-22', 300), row('day', '2026-11-23', 9)] });
    expect(storage.tables).toEqual([{ name: 'profiles', files: 1, bytes: 5, rows: 10 }]);
    expect(growth(storage)).toBe(200);
    expect(growth({ tables: [], days: storage.days.slice(2) })).toBeNull();
    expect(readStorage({})).toEqual({ tables: [], days: [] });
  });

  it('have clients, some without an address', () => {
    const [one] = readSenders({ senders: [{ agent: 'alluvium/1', address: null, firstSeen: 1, lastSeen: 2, requests: 3, failed: 1, bytes: 4, lastStatus: 429 }] });
    expect(one).toEqual({ agent: 'alluvium/1', address: '', first: 1, last: 2, requests: 3, failed: 1, bytes: 4, lastStatus: 429, queue: null });
    expect(readSenders({})).toEqual([]);
  });

  it('have collectors, whose health follows from their last request', () => {
    const now = 1e9;
    const [one] = readSenders({ senders: [{ lastSeen: now, lastStatus: 200, queue: { host: 'web-1', component: 'c', profiles: 3, oldestMs: 500, dropped: 0, failures: 0 } }] });
    expect(one?.queue).toEqual({ host: 'web-1', component: 'c', profiles: 3, oldest: 500, dropped: 0, failures: 0 });
    const health = (sender: object, queue: object = {}) => collectorHealth({ ...one!, ...sender, queue: { ...one!.queue!, ...queue } }, now);
    expect(health({})).toEqual({ text: 'up to date', good: true });
    expect(health({}, { failures: 4 })).toEqual({ text: 'recovered after 4 failures', good: true });
    expect(health({}, { oldest: 600_000 })).toEqual({ text: '10 min behind', good: false });
    expect(health({ last: now - 3_600_000 * 3 }, { oldest: 600_000 })).toEqual({ text: 'no request for 3 h', good: false });
    expect(health({ lastStatus: 503 })).toEqual({ text: 'last response 503', good: false });
  });

  it('have settings of any shape', () => {
    expect(readSettings({ a: 1, b: '1h', c: { d: true } })).toEqual([['a', '1'], ['b', '1h'], ['c', '{"d":true}']]);
  });
});
