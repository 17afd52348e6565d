import { describe, expect, it } from 'vitest';
import { formatCost, monthly, readPrices } from '../../src/lib/cost.ts';
import { treemap } from '../../src/lib/treemap.ts';
import type { Fleet, Measure, Service } from '../../src/models/fleet.ts';
import { groupsOf, rank, together } from '../../src/models/ranked.ts';

const measure = (value: number, points = 60): Measure => ({ type: 't', mean: value, sum: value * points, step: 60, points: Array.from({ length: points }, (_, at) => [at * 60_000, value]) });
const GIB = 2 ** 30;

function fleetOf(services: readonly [string, string, number | null, number | null][]): Fleet {
  const all = services.map(([name, group, cpu, memory]): Service => ({ key: `${name} ${group}`, name, group, types: [], cpu: cpu === null ? null : measure(cpu), memory: memory === null ? null : measure(memory * GIB) }));
  const whole = (of: 'cpu' | 'memory') => ({ mean: 0, sum: all.reduce((sum, service) => sum + (service[of]?.sum ?? 0), 0) });
  return { services: all, cpu: whole('cpu'), memory: whole('memory'), range: { start: 0, end: 3_600_000 }, label: '', step: 60 };
}

const PRICES = { core: 0.03, gib: 0.004, currency: '€' };
const FLEET = fleetOf([['api', 'shop', 2, 1], ['batch', 'data', 1, 20], ['cron', '', null, 3], ['dead', 'shop', null, null]]);

describe('services', () => {
  it('are sorted by their use; services without measurements come last', () => {
    const names = (order: Parameters<typeof rank>[1]) => rank(FLEET, order, PRICES).services.map(({ name }) => name);
    expect(names('cpu')).toEqual(['api', 'batch', 'cron', 'dead']);
    expect(names('memory')).toEqual(['batch', 'cron', 'api', 'dead']);
    expect(names('cost')).toEqual(['batch', 'api', 'cron', 'dead']);
    expect(names('name')).toEqual(['api', 'batch', 'cron', 'dead']);
  });

  it('have shares of the sum over all services, of CPU or of cost', () => {
    expect(rank(FLEET, 'cpu', null)).toMatchObject({ what: 'CPU', cost: null, services: [{ share: 2 / 3 }, { share: 1 / 3 }, { share: 0 }, { share: 0 }] });
    const { what, cost, services } = rank(FLEET, 'cost', PRICES);
    expect(what).toBe('cost');
    expect(cost).toBeCloseTo(730 * (3 * 0.03 + 24 * 0.004), 8);
    expect(services[0]).toMatchObject({ name: 'batch', cost: 730 * (0.03 + 20 * 0.004) });
    expect(services.reduce((sum, { share }) => sum + (share ?? 0), 0)).toBeCloseTo(1, 9);
    expect(services.at(-1)).toMatchObject({ name: 'dead', cost: null, size: 0 });
  });

  it('are sorted by CPU instead of cost if there are no prices, and by memory instead of CPU if CPU was not measured', () => {
    expect(rank(FLEET, 'cost', null)).toMatchObject({ what: 'CPU', services: [{ name: 'api' }, {}, {}, {}] });
    expect(rank(fleetOf([['a', '', null, 1]]), 'cpu', null).what).toBe('memory');
    expect(rank(fleetOf([['a', '', null, null]]), 'cpu', null).services[0]!.share).toBeNull();
  });

  it('are grouped by a label, the largest group first, those without the label last', () => {
    const groups = groupsOf(rank(FLEET, 'memory', null).services, 'memory');
    expect(groups.map(({ name, services }) => [name, services.map((service) => service.name)])).toEqual([['data', ['batch']], ['shop', ['api', 'dead']], ['', ['cron']]]);
    expect(groups[0]!.share).toBeCloseTo(20 / 24, 9);
    expect(groupsOf(rank(FLEET, 'name', null).services, 'name').map(({ name }) => name)).toEqual(['data', 'shop', '']);
    expect(together(FLEET.services, 'cpu')).toBe(3);
    expect(together([], 'cpu')).toBeNull();
  });
});

describe('costs', () => {
  it('are projected to a month from the use in the range', () => {
    expect(monthly({ sum: 120, step: 30 }, null, 1, PRICES)).toBeCloseTo(730 * 0.03, 9);
    expect(monthly(null, null, 1, PRICES)).toBeNull();
    expect([1240.4, 3.456, 0.001, 0].map((amount) => formatCost(amount, PRICES))).toEqual(['1,240 €', '3.46 €', '<0.01 €', '0 €']);
  });

  it('need valid prices', () => {
    expect(readPrices(JSON.stringify(PRICES))).toEqual(PRICES);
    expect(readPrices('{"core":1,"gib":0}')).toEqual({ core: 1, gib: 0, currency: '' });
    for (const wrong of [undefined, '', 'x', 'null', '{}', '{"core":-1,"gib":1}', '{"core":0,"gib":0}', '{"core":"1","gib":1}', '{"core":1e400,"gib":1}']) expect(readPrices(wrong)).toBeNull();
  });
});

describe('a map', () => {
  const box = { x: 10, y: 20, width: 600, height: 400 };

  it('has rectangles whose areas are proportional to the values, inside its box, without overlaps', () => {
    const sizes = [60, 60, 40, 30, 20, 20, 10, 0, -5];
    const tiles = treemap(sizes.map((size, item) => ({ item, size })), box);
    expect(tiles.map(({ item }) => item)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    for (const { item, x, y, width, height } of tiles) {
      expect((width * height) / (600 * 400)).toBeCloseTo(sizes[item]! / 240, 9);
      expect(Math.max(width / height, height / width)).toBeLessThan(4);
      expect([x >= 10, y >= 20, x + width <= 610.001, y + height <= 420.001]).toEqual([true, true, true, true]);
    }
    for (const [at, one] of tiles.entries()) for (const two of tiles.slice(at + 1)) {
      const across = Math.min(one.x + one.width, two.x + two.width) - Math.max(one.x, two.x);
      const along = Math.min(one.y + one.height, two.y + two.height) - Math.max(one.y, two.y);
      expect(Math.min(across, along)).toBeLessThan(1e-6);
    }
  });

  it('is empty without values, and fast for thousands', () => {
    expect(treemap([{ item: 1, size: 0 }], box)).toEqual([]);
    expect(treemap([{ item: 1, size: 1 }], { ...box, width: 0 })).toEqual([]);
    expect(treemap(Array.from({ length: 5000 }, (_, item) => ({ item, size: 1 / (item + 1) })), box)).toHaveLength(5000);
  });
});
