// The requests of the Pipeline view to the collector: its components and its state, polled while the page is visible, and the flow stream.

import { createEffect, createMemo, createSignal, on, onCleanup, onMount, type Accessor } from 'solid-js';
import { ApiError } from '../lib/api.ts';
import { BASE } from '../lib/base.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { Flows, pathOfId, readComponents, readDetail, readOverview, readRate, type Component, type Detail, type Overview } from '../pipeline/model.ts';
import { follow, parse } from '../pipeline/stream.ts';

const POLL_MS = 3000;
/** Milliseconds between requests for a list with more than `LONG` components, which may have a megabyte. */
const LONG_POLL_MS = 10_000;
const LONG = 1000;
/** Length in seconds of the window over which the collector counts each flow. */
const WINDOW = 2;

async function request(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${BASE}api/v0/web/${path}`, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError('cannot reach the collector; check that it runs and that the network is up', 'network', 0);
  }
  if (!response.ok) {
    const text = (await response.text().catch(() => '')).trim().slice(0, 400);
    throw new ApiError(text || `${path} returned status ${response.status}`, response.status === 404 ? 'not_found' : 'unknown', response.status);
  }
  return response;
}

const ask = async (path: string, signal: AbortSignal): Promise<unknown> => (await request(path, { signal, headers: { accept: 'application/json' } })).json();

/** Returns the stacks of all goroutines of a target that the component scrapes. `url` is the URL of its goroutine profile. */
export async function goroutineDump(id: string, url: string): Promise<Blob> {
  const response = await request(`goroutines/${pathOfId(id)}?target=${encodeURIComponent(url)}`, { method: 'POST' });
  return response.blob();
}

async function components(module: string, signal: AbortSignal): Promise<Component[]> {
  return readComponents(await ask(module === '' ? 'components' : `modules/${pathOfId(module)}/components`, signal));
}

export interface PipelineData {
  components: Loader<Component[]>;
  overview: Loader<Overview>;
  detail: Loader<Detail>;
  flows: Accessor<Flows>;
  refresh: () => void;
}

/** Loads the data of a module and of the selected component, if there is one, and refreshes them. */
export function createPipeline(moduleOf: Accessor<string>, selectedOf: Accessor<string>): PipelineData {
  // Memos, so that a change of other parts of the URL sends no requests.
  const module = createMemo(moduleOf);
  const selected = createMemo(selectedOf);
  const [tick, setTick] = createSignal(0);
  const list = createLoader(() => ({ module: module(), tick: tick() }), ({ module: id }, signal) => components(id, signal));
  const overview = createLoader(tick, async (_, signal) => readOverview(await ask('controller', signal)));
  const detail = createLoader(
    // Loaded after each list, so that no request is sent for a component that is not in the list.
    () => (list.data()?.some(({ id }) => id === selected()) ? { id: selected() } : null),
    async ({ id }, signal) => readDetail(await ask(`components/${pathOfId(id)}`, signal)),
  );
  const [flows, setFlows] = createSignal(new Flows());

  const refresh = (): void => void setTick((count) => count + 1);
  let last = Date.now();
  onMount(() => {
    const timer = setInterval(() => {
      const wait = (list.data()?.length ?? 0) > LONG ? LONG_POLL_MS : POLL_MS;
      if (document.visibilityState !== 'visible' || Date.now() - last < wait || list.pending()) return;
      last = Date.now();
      refresh();
    }, POLL_MS / 3);
    onCleanup(() => clearInterval(timer));
  });
  createEffect(on(module, (id) => {
    const stop = new AbortController();
    setFlows(new Flows());
    // Every window has a count for every edge, and `Flows` stores only the newest count of each edge. The signal notifies the views only if it gets a new object, so later counts go into a copy.
    let current = new Flows();
    let dirty = false;
    void follow(`api/v0/web/graph${id === '' ? '' : `/${pathOfId(id)}`}?window=${WINDOW}`, {
      entries: (entries) => {
        for (const entry of entries) {
          const rate = readRate(parse(entry));
          if (rate) current.add(rate);
        }
        dirty = true;
      },
      alive: () => {
        if (!dirty) return;
        dirty = false;
        const shown = current;
        current = shown.copy();
        setFlows(shown);
      },
      state: () => undefined,
    }, stop.signal);
    onCleanup(() => stop.abort());
  }));
  return { components: list, overview, detail, flows, refresh };
}
