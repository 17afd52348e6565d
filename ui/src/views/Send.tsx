// How to send profiles to this server: instructions for each language and tool, with the address of this server. If the server
// requires authentication, the instructions include the steps for a token.

import { createMemo, For, Show } from 'solid-js';
import { Command } from '../components/Notice.tsx';
import { BASE } from '../lib/base.ts';
import { serverAddress } from '../lib/commands.ts';
import { createLoader } from '../lib/loader.ts';
import { TOKEN_STEPS, waysTo, type Way } from '../lib/send.ts';
import { asksWhoCalls } from '../lib/session.ts';
import { createUrl } from '../router.ts';
import { SEND } from '../urls.ts';

const GROUPS = ['Programs', 'Machines', 'By hand'] as const;

export default function Send() {
  const { at, go } = createUrl(SEND);
  const server = serverAddress(location.origin, BASE);
  const session = createLoader(() => true as const, (_, signal) => asksWhoCalls(signal));
  const asks = (): boolean => session.data() === true;
  const ways = waysTo(server, false);
  const way = createMemo((): Way => {
    const now = waysTo(server, asks());
    return now.find(({ key }) => key === at.way()) ?? now[0]!;
  });
  let list!: HTMLDivElement;
  const choose = (key: string): void => go({ way: key === ways[0]!.key ? '' : key }, { replace: true });
  const keys = (event: KeyboardEvent): void => {
    const now = ways.findIndex(({ key }) => key === way().key);
    const to = { ArrowDown: now + 1, ArrowRight: now + 1, ArrowUp: now - 1, ArrowLeft: now - 1, Home: 0, End: ways.length - 1 }[event.key];
    const next = to === undefined ? undefined : ways[(to + ways.length) % ways.length];
    if (!next) return;
    event.preventDefault();
    choose(next.key);
    queueMicrotask(() => list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>Send profiles here</h1>
        <span class="facts">to <b>{server}</b></span>
      </div>
      <div class="content send">
        <div class="ways" role="tablist" aria-label="Ways to send profiles" aria-orientation="vertical" ref={list} onKeyDown={keys}>
          <For each={GROUPS}>
            {(group) => (
              <>
                <div class="group-name" role="presentation">{group}</div>
                <For each={ways.filter((other) => other.group === group)}>
                  {({ key, label }) => <button type="button" role="tab" id={`way-${key}`} aria-selected={way().key === key} aria-controls="way" tabindex={way().key === key ? 0 : -1} onClick={() => choose(key)}>{label}</button>}
                </For>
              </>
            )}
          </For>
        </div>
        <section class="way" id="way" role="tabpanel" aria-labelledby={`way-${way().key}`} tabindex="0">
          <h2>{way().label}</h2>
          <p>{way().what}</p>
          <Show when={asks()}>
            <section class="token" aria-labelledby="token">
              <h3 id="token">This server requires authentication</h3>
              <p>Programs authenticate with a token, which this page does not show. Any token with the role <code>write</code> works. If the server has several tenants, <code>--tenant</code> in the first command selects one.</p>
              <ol><For each={TOKEN_STEPS}>{({ title, text }) => <li><h4>{title}</h4><Command text={text} /></li>}</For></ol>
            </section>
          </Show>
          <ol>
            <For each={way().steps}>{({ title, text }) => <li><h3>{title}</h3><Command text={text} /></li>}</For>
          </ol>
          <Show when={way().group !== 'By hand'}><p class="muted">Profiles appear under Services within a minute. If the server has several tenants, also send the header X-Scope-OrgID.</p></Show>
        </section>
      </div>
    </main>
  );
}
