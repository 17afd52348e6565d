import { describe, expect, it } from 'vitest';
import { layoutDiff } from '../../src/flame/diff.ts';
import { invert } from '../../src/flame/invert.ts';
import { emptyFlame, findPath, pathText, type Flame } from '../../src/flame/layout.ts';
import { peek } from '../../src/flame/peek.ts';
import { PRESETS, presetOfNames } from '../../src/flame/presets.ts';
import { isPlain, PLAIN, type Recipe } from '../../src/flame/recipe.ts';
import { calleesOf, callersOf } from '../../src/flame/sandwich.ts';
import { hottest } from '../../src/flame/top.ts';
import { sandwichOf, shapeTree, type Tree } from '../../src/flame/tree.ts';
import { flameOf, stacksOf } from './stacks.ts';

/** Checks that a graph is consistent: totals are the sum of their parts, and children lie inside their parents. */
function sound(flame: Flame): void {
  for (let node = 0; node < flame.count; node += 1) {
    let inside = flame.self[node]!;
    for (let child = 0; child < flame.count; child += 1) {
      if (flame.parent[child] !== node) continue;
      inside += flame.total[child]!;
      expect(flame.level[child]).toBe(flame.level[node]! + 1);
      expect(flame.start[child]).toBeGreaterThanOrEqual(flame.start[node]! + flame.self[node]!);
      expect(flame.start[child]! + flame.total[child]!).toBeLessThanOrEqual(flame.start[node]! + flame.total[node]!);
    }
    expect(inside).toBe(flame.total[node]);
    if (node > 0 && flame.level[node] === flame.level[node - 1]) expect(flame.start[node]).toBeGreaterThanOrEqual(flame.start[node - 1]! + flame.total[node - 1]!);
  }
  expect(flame.levelStart[flame.depth]).toBe(flame.count);
}

const TEXT = `
  main;serve;json.Marshal;runtime.mallocgc;runtime.nextFree 10
  main;serve;json.Marshal 5
  main;serve;db.Query;runtime.mallocgc 7
  main;serve;db.Query;json.Marshal 3
  main;idle 20
  gc;runtime.mallocgc 2
`;
const flame = flameOf(TEXT);
const tree: Tree = { flame, sides: null, reads: 'callees' };
const shaped = (recipe: Partial<Recipe>) => shapeTree(tree, { ...PLAIN, ...recipe });
const stacks = (recipe: Partial<Recipe>): string[] => {
  const { shown } = shaped(recipe);
  sound(shown.flame);
  return stacksOf(shown.flame);
};
const nameOf = (name: string): number => flame.names.indexOf(name);

describe('a recipe', () => {
  it('without rules leaves the graph unchanged', () => {
    expect(isPlain(PLAIN)).toBe(true);
    expect(shaped({}).shown).toBe(tree);
    sound(flame);
    expect(stacksOf(flame)).toHaveLength(6);
  });

  it('selects stacks with a matching frame; shares refer to the whole graph', () => {
    expect(stacks({ only: ['db'] })).toEqual(['main;serve;db.Query;json.Marshal 3', 'main;serve;db.Query;runtime.mallocgc 7']);
    const { flame: shown } = shaped({ only: ['db'] }).shown;
    expect([shown.total[0], shown.sum]).toEqual([10, 47]);
    expect(stacks({ only: ['db', 'json'] })).toEqual(['main;serve;db.Query;json.Marshal 3']);
    expect(stacks({ only: ['nosuch'] })).toEqual([]);
  });

  it('excludes stacks', () => {
    expect(stacks({ without: ['idle', '=gc'] })).toHaveLength(4);
    expect(stacks({ without: ['total'] })).toHaveLength(6);
  });

  it('removes frames, and adds their values to their callers', () => {
    expect(stacks({ hide: ['mallocgc'] })).toContain('main;serve;json.Marshal;runtime.nextFree 10');
    expect(stacks({ hide: ['mallocgc'] })).toContain('gc 2');
    const { flame: shown } = shaped({ hide: ['/runtime|gc/'] }).shown;
    expect(shown.total[0]).toBe(47);
    expect(shown.self[0]).toBe(2);
    expect(stacksOf(shown)).toContain('main;serve;json.Marshal 15');
  });

  it('shows only the frames of one package, and omits stacks without such a frame', () => {
    expect(stacks({ package: 'json' })).toEqual(['json.Marshal 18']);
    expect(shaped({ package: 'json' }).shown.flame.sum).toBe(47);
  });

  it('folds the internal calls of a runtime into the frame that entered it', () => {
    expect(stacks({ fold: ['go'] })).toEqual([...stacksOf(flame).filter((stack) => !stack.includes('nextFree')), 'main;serve;json.Marshal;runtime.mallocgc 10'].sort());
    expect(stacks({ fold: ['nosuch'] })).toEqual(stacksOf(flame));
  });

  it('collapses recursion, and keeps the callees of deeper calls', () => {
    const deep: Tree = { flame: flameOf('a;b;a;b;c 4\na;a;a 2\na;d 1'), sides: null, reads: 'callees' };
    const { flame: shown } = shapeTree(deep, { ...PLAIN, recursion: true }).shown;
    sound(shown);
    expect(stacksOf(shown)).toEqual(['a 2', 'a;b;c 4', 'a;d 1']);
  });

  it('inverts: leaves first, the largest at the left, every value kept', () => {
    expect(stacks({ invert: true })).toEqual(['idle;main 20', 'json.Marshal;db.Query;serve;main 3', 'json.Marshal;serve;main 5', 'runtime.mallocgc;db.Query;serve;main 7', 'runtime.mallocgc;gc 2', 'runtime.nextFree;runtime.mallocgc;json.Marshal;serve;main 10'].sort());
    const { calls, shown } = shaped({ invert: true });
    expect(calls).toBe(tree);
    expect(shown.flame.total[0]).toBe(47);
    expect(flame.names[shown.flame.name[1]!]).toBe('idle');
  });

  it('applies several rules in a fixed order', () => {
    expect(stacks({ only: ['serve'], hide: ['=serve'], fold: ['go'], invert: true })).toEqual(['json.Marshal;db.Query;main 3', 'json.Marshal;main 5', 'runtime.mallocgc;db.Query;main 7', 'runtime.mallocgc;json.Marshal;main 10']);
  });

  it('reports texts that cannot be parsed, and ignores them', () => {
    const { errors, shown } = shaped({ only: ['/(/'], hide: ['=gc'] });
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(/^\/\(\/: /);
    expect(stacksOf(shown.flame)).toContain('runtime.mallocgc 2');
  });

  it('keeps the path of a frame, as links contain it, if all callers of the frame remain', () => {
    const { flame: shown } = shaped({ only: ['db'] }).shown;
    const node = flame.name.indexOf(nameOf('db.Query'));
    expect(shown.name[findPath(shown, pathText(flame, node))]).toBe(nameOf('db.Query'));
  });

  it('survives an empty graph', () => {
    const nothing: Tree = { flame: emptyFlame([], [], [], 0, 0), sides: null, reads: 'callees' };
    const all: Recipe = { only: ['a'], without: ['b'], hide: ['c'], package: 'd', fold: ['go'], recursion: true, invert: true };
    expect(shapeTree(nothing, all).shown.flame.sum).toBe(0);
  });
});

describe('an inverted graph with a limit on its nodes', () => {
  it('ends paths sooner and loses no value', () => {
    const { flame: small } = invert(flame, 4);
    sound(small);
    expect(small.count).toBe(4);
    expect(small.total[0]).toBe(47);
    expect(stacksOf(small)).toContain('idle;main 20');
  });
});

describe('callers and callees of a function', () => {
  it('have the total of all its calls on both sides', () => {
    const malloc = nameOf('runtime.mallocgc');
    const { flame: callees } = calleesOf(flame, malloc);
    const { flame: callers } = callersOf(flame, malloc);
    sound(callees);
    sound(callers);
    expect([callees.total[0], callers.total[0], callees.sum]).toEqual([19, 19, 47]);
    expect(stacksOf(callees)).toEqual([' 9', 'runtime.nextFree 10']);
    expect(stacksOf(callers)).toEqual(['db.Query;serve;main 7', 'gc 2', 'json.Marshal;serve;main 10']);
  });

  it('count recursive calls once', () => {
    const deep = flameOf('m;a;b;a;c 4\na 1');
    const name = deep.names.indexOf('a');
    expect(stacksOf(calleesOf(deep, name).flame)).toEqual([' 1', 'b;a;c 4']);
    expect(stacksOf(callersOf(deep, name).flame)).toEqual([' 1', 'm 4']);
  });

  it('are empty for a function that is not in the graph', () => {
    expect(calleesOf(flame, -1).flame.total[0]).toBe(0);
    expect(callersOf(flame, -1).flame.total[0]).toBe(0);
  });
});

describe('both sides of a difference', () => {
  // total -> a (3 | 1) -> x (2 | 0), y (1 | 1); b (0 | 4) -> x (0 | 4)
  const { flame: merged, sides } = layoutDiff({
    names: ['total', 'a', 'b', 'x', 'y'],
    levels: [
      { values: [0, 3, 0, 0, 5, 0, 0] },
      { values: [0, 3, 0, 0, 1, 0, 1, 0, 0, 0, 0, 4, 0, 2] },
      { values: [0, 2, 2, 0, 0, 0, 3, 0, 1, 1, 0, 1, 1, 4, 0, 0, 0, 0, 4, 4, 3] },
    ],
  });
  const difference: Tree = { flame: merged, sides, reads: 'callees' };
  const pairs = ({ flame: shown, sides: both }: Tree): string[] => Array.from({ length: shown.count }, (_, node) => `${shown.names[shown.name[node]!]} ${both?.left.total[node]} ${both?.right.total[node]}`);

  it('have the values of the frames that remain after the rules', () => {
    expect(pairs(shapeTree(difference, { ...PLAIN, hide: ['=a', '=b'] }).shown)).toEqual(['total 3 5', 'x 2 4', 'y 1 1']);
    expect(pairs(shapeTree(difference, { ...PLAIN, only: ['=b'] }).shown)).toEqual(['total 0 4', 'b 0 4', 'x 0 4']);
    expect(pairs(shapeTree(difference, { ...PLAIN, invert: true }).shown).slice(0, 3).sort()).toEqual(['total 3 5', 'x 2 4', 'y 1 1']);
  });

  it('are merged for the callers and callees of a function', () => {
    const { callers, callees } = sandwichOf(difference, 3);
    expect(pairs(callees)).toEqual(['x 2 4']);
    expect(pairs(callers).sort()).toEqual(['a 2 0', 'b 0 4', 'x 2 4']);
    expect(callers.sides?.right.sum).toBe(5);
  });
});

describe('the function with the largest own value', () => {
  it('is neither a folded frame nor the root', () => {
    expect(flame.names[hottest(flame)]).toBe('idle');
    expect(hottest(emptyFlame([], [], [], 0, 0))).toBe(-1);
  });
});

describe('peek', () => {
  it('has callers, callees and own values', () => {
    const found = peek(flame, nameOf('json.Marshal'));
    expect([found.self, found.total, found.root]).toEqual([8, 18, 0]);
    expect(found.callers.map(({ name, value, total }) => [flame.names[name], value, total])).toEqual([['serve', 15, 25], ['db.Query', 3, 10]]);
    expect(found.callees.map(({ name, value, self }) => [flame.names[name], value, self])).toEqual([['runtime.mallocgc', 10, 9]]);
    expect(peek(flame, nameOf('main')).root).toBe(45);
  });

  it('counts a call once for each stack', () => {
    const deep = flameOf('a;b;a;b 6\nb 1');
    const found = peek(deep, deep.names.indexOf('b'));
    expect(found.callers.map(({ name, value }) => [deep.names[name], value])).toEqual([['a', 6]]);
    expect(found.callees.map(({ name, value }) => [deep.names[name], value])).toEqual([['a', 6]]);
    expect([found.total, found.root]).toEqual([7, 1]);
  });
});

describe('presets', () => {
  const of = (name: string, file = '', mapping = ''): string => PRESETS[presetOfNames([name], [file], [mapping])[0]! - 1]?.key ?? '';

  it('recognize code that does not belong to the program, by language', () => {
    expect(of('runtime.mallocgc', 'runtime/malloc.go')).toBe('go');
    expect(of('internal/runtime/syscall.EpollWait')).toBe('go');
    expect(of('net/http.(*conn).serve', 'net/http/server.go')).toBe('go-std');
    expect(of('strings.Split')).toBe('go-std');
    expect(of('java.util.HashMap.get')).toBe('jvm');
    expect(of('java/util/HashMap.get')).toBe('jvm');
    expect(of('dumps', '/usr/lib/python3.12/json/__init__.py')).toBe('python');
    expect(of('node:internal/timers listOnTimeout', 'node:internal/timers')).toBe('node');
    expect(of('each', '/usr/lib/ruby/3.2.0/set.rb')).toBe('ruby');
    expect(of('System.String.Concat')).toBe('dotnet');
    expect(of('<alloc::vec::Vec<T> as core::clone::Clone>::clone')).toBe('rust');
    expect(of('__memmove_avx', '', '/usr/lib/x86_64-linux-gnu/libc.so.6')).toBe('native');
    expect(of('do_syscall_64', '', '[kernel.kallsyms]')).toBe('kernel');
  });

  it('ignore code of the program', () => {
    expect(of('github.com/acme/shop.(*Service).Quote', 'shop/service.go')).toBe('');
    expect(of('main.main', 'main.go')).toBe('');
    expect(of('time.sleep', 'app/time.py')).toBe('');
    expect(of('log::info')).toBe('');
    expect(of('get', '/venv/lib/python3.12/site-packages/requests/api.py')).toBe('');
    expect(of('com.acme.Shop.quote')).toBe('');
    expect(of('')).toBe('');
  });
});
