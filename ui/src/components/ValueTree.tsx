// Values of the configuration language as a tree; lists of objects, such as targets, as a table. Values are shown as text, never as
// markup.

import { createMemo, createSignal, For, Match, Show, Switch } from 'solid-js';
import { formatWhole } from '../lib/format.ts';
import type { Field, Value } from '../pipeline/model.ts';

/** Number of rows or items that are shown at first. A click adds four times as many. */
const ROWS = 50;
/** A list or object with more items than this starts folded. */
const FOLD = 12;

/** If there are more blocks than this, all start folded. */
const OPEN_BLOCKS = 4;

/** Returns the texts of the first two attributes that usually distinguish a block from its neighbours. They are shown while the block is folded. */
function hint(body: readonly Field[]): string {
  const say = (name: string): string => {
    const field = body.find((field) => field.name === name);
    return field?.type === 'attr' && field.value.type === 'string' ? String(field.value.value) : '';
  };
  return ['health', 'url', 'name', 'path', 'action', 'target_label', 'regex'].map(say).filter(Boolean).slice(0, 2).join(' ');
}

/** Whether each part is open, by path. New values arrive every few seconds and do not reset this state. */
export type Opened = Map<string, boolean>;

interface Pair {
  key: string;
  value: Value;
}

const pairsOf = (value: Value): Pair[] =>
  (Array.isArray(value.value) ? value.value : []).map((entry): Pair => {
    const { key, value: inner } = entry as { key?: unknown; value?: unknown };
    return { key: String(key ?? ''), value: asValue(inner) };
  });

function asValue(value: unknown): Value {
  const { type, value: inner } = (typeof value === 'object' && value !== null ? value : {}) as { type?: unknown; value?: unknown };
  return { type: typeof type === 'string' ? type : 'null', value: inner };
}

const itemsOf = (value: Value): Value[] => (Array.isArray(value.value) ? value.value.map(asValue) : []);
const isSimple = (value: Value): boolean => value.type !== 'object' && value.type !== 'array';

export function Fields(props: { fields: readonly Field[]; path: string; opened: Opened; none: string }) {
  const blocks = (): number => props.fields.reduce((count, { type }) => count + Number(type === 'block'), 0);
  return (
    <Show when={props.fields.length > 0} fallback={<p class="muted none">{props.none}</p>}>
      <dl class="fields">
        <For each={props.fields}>
          {(field, index) => {
            const path = (): string => `${props.path}/${field.name}.${index()}`;
            return field.type === 'attr' ? (
              <Entry name={field.name} value={field.value} path={path()} opened={props.opened} />
            ) : (
              <div class="block">
                <dt class="visually-hidden">{field.name}</dt>
                <dd>
                  <details open={props.opened.get(path()) ?? blocks() <= OPEN_BLOCKS} onToggle={(event) => props.opened.set(path(), event.currentTarget.open)}>
                    <summary><code>{field.name}{field.label === '' ? '' : ` "${field.label}"`}</code> <span class="muted clip">{hint(field.body)}</span></summary>
                    <Fields fields={field.body} path={path()} opened={props.opened} none="empty" />
                  </details>
                </dd>
              </div>
            );
          }}
        </For>
      </dl>
    </Show>
  );
}

function Entry(props: { name: string; value: Value; path: string; opened: Opened }) {
  const items = createMemo(() => (props.value.type === 'array' ? itemsOf(props.value) : []));
  const size = (): number => (props.value.type === 'object' ? pairsOf(props.value).length : items().length);
  return (
    <Show
      when={!isSimple(props.value) && size() > 0}
      fallback={
        <div class="entry">
          <dt><code>{props.name}</code></dt>
          <dd><Simple value={props.value} /></dd>
        </div>
      }
    >
      <div class="block">
        <dt class="visually-hidden">{props.name}</dt>
        <dd>
          <details
            open={props.opened.get(props.path) ?? size() <= FOLD}
            onToggle={(event) => props.opened.set(props.path, event.currentTarget.open)}
          >
            <summary><code>{props.name}</code> <span class="muted">{formatWhole(size())} {props.value.type === 'object' ? (size() === 1 ? 'field' : 'fields') : size() === 1 ? 'item' : 'items'}</span></summary>
            <Inside value={props.value} path={props.path} opened={props.opened} />
          </details>
        </dd>
      </div>
    </Show>
  );
}

function Inside(props: { value: Value; path: string; opened: Opened }) {
  const items = createMemo(() => itemsOf(props.value));
  return (
    <Switch>
      <Match when={props.value.type === 'object'}>
        <dl class="fields"><For each={pairsOf(props.value)}>{({ key, value }) => <Entry name={key} value={value} path={`${props.path}/${key}`} opened={props.opened} />}</For></dl>
      </Match>
      <Match when={items().every((item) => item.type === 'object' && pairsOf(item).every(({ value }) => isSimple(value)))}>
        <ObjectTable items={items()} />
      </Match>
      <Match when={items().every(isSimple)}>
        <More count={items().length}>{(shown) => <ul class="items"><For each={items().slice(0, shown)}>{(item) => <li><Simple value={item} /></li>}</For></ul>}</More>
      </Match>
      <Match when={true}>
        <More count={items().length}>{(shown) => <dl class="fields"><For each={items().slice(0, shown)}>{(item, index) => <Entry name={String(index())} value={item} path={`${props.path}/${index()}`} opened={props.opened} />}</For></dl>}</More>
      </Match>
    </Switch>
  );
}

/** A table with a row for each object and a column for each field name; the most frequent names come first. */
function ObjectTable(props: { items: readonly Value[] }) {
  const rows = createMemo(() => props.items.map((item) => new Map(pairsOf(item).map(({ key, value }) => [key, value]))));
  const columns = createMemo(() => {
    const counts = new Map<string, number>();
    for (const row of rows()) for (const key of row.keys()) counts.set(key, (counts.get(key) ?? 0) + 1);
    return [...counts.keys()].sort((a, b) => counts.get(b)! - counts.get(a)! || a.localeCompare(b));
  });
  return (
    <More count={rows().length}>
      {(shown) => (
        <div class="table-scroll" tabindex="0" role="region" aria-label="Table">
          <table>
            <thead><tr><For each={columns()}>{(name) => <th scope="col">{name}</th>}</For></tr></thead>
            <tbody>
              <For each={rows().slice(0, shown)}>
                {(row) => <tr><For each={columns()}>{(name) => <td>{row.has(name) ? <Simple value={row.get(name)!} bare /> : null}</td>}</For></tr>}
              </For>
            </tbody>
          </table>
        </div>
      )}
    </More>
  );
}

function More(props: { count: number; children: (shown: number) => unknown }) {
  const [shown, setShown] = createSignal(ROWS);
  return (
    <>
      {props.children(shown()) as never}
      <Show when={props.count > shown()}>
        <button type="button" class="button plain" onClick={() => setShown(shown() + ROWS * 4)}>Show {formatWhole(Math.min(ROWS * 4, props.count - shown()))} more of {formatWhole(props.count)}</button>
      </Show>
    </>
  );
}

/** A value without inner values. `bare` omits the quotes of text, for tables. */
function Simple(props: { value: Value; bare?: boolean }) {
  const text = (): string => {
    const { type, value } = props.value;
    if (type === 'string') return props.bare ? String(value) : JSON.stringify(value);
    if (type === 'array') return '[]';
    if (type === 'object') return '{}';
    return value === null || value === undefined ? 'null' : String(value);
  };
  return <code class={`value-${props.value.type}`}>{text()}</code>;
}
