// The File view shows a file that the user has dropped or chosen, alone or compared with stored profiles. The server stores the file only
// on request; a stored file has a link.

import { createEffect, createMemo, createSignal, For, Match, on, Show, Switch } from 'solid-js';
import { Amount } from '../components/Amount.tsx';
import { DiffPane } from '../components/DiffPane.tsx';
import { FileChooser, FileFormats } from '../components/FileChooser.tsx';
import { Filters } from '../components/Filters.tsx';
import { MergedPane } from '../components/MergedPane.tsx';
import { Failure, Notice } from '../components/Notice.tsx';
import { NothingInRange } from '../components/NothingInRange.tsx';
import { Picker } from '../components/Picker.tsx';
import { Share } from '../components/Share.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { keepFile } from '../lib/adhoc.ts';
import { ApiError } from '../lib/api.ts';
import { file, takeFile } from '../lib/dropped.ts';
import { formatMoment, formatValue } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { printMatchers } from '../lib/selector.ts';
import { absolute } from '../lib/time.ts';
import { say } from '../lib/toast.ts';
import { createAdhoc, createKept, nameOfId, type AdhocModel, type Look } from '../models/adhoc.ts';
import { createCatalogue } from '../models/catalogue.ts';
import { createRange, type RangeModel } from '../models/range.ts';
import { createSelection, serviceSelector, type Selection } from '../models/selection.ts';
import { createUrl, follow, type Url } from '../router.ts';
import { ADHOC } from '../urls.ts';

type AdhocUrl = Url<typeof ADHOC.keys>;

export default function Adhoc() {
  const url = createUrl(ADHOC);
  const { at, go } = url;
  const [keeping, setKeeping] = createSignal(false);
  const time = createRange(at);
  const comparing = (): boolean => at.compare() === 'stored';
  // The profile type that is shown. The server names it in its first response.
  const [shown, setShown] = createSignal('');
  const selection = createSelection({ service: at.service, type: shown, q: at.q }, time.range);
  const data = createAdhoc(at, file, createMemo(() => (comparing() && at.service() !== '' ? { selector: serviceSelector(at.service(), selection.matchers().list), range: time.range() } : null)));
  createEffect(on(data.look.data, (found) => setShown(found?.type.id ?? '')));

  const name = (): string => (at.id() === '' ? (file()?.name ?? '') : nameOfId(at.id()));
  const clear = { of: '', focus: '', sel: '', search: '' };
  const take = (taken: File): void => {
    takeFile(taken);
    go({ ...clear, id: '' });
  };
  const close = (): void => {
    takeFile(null);
    go({ ...clear, id: '', compare: 'no' });
  };
  const keep = (): void => {
    const mine = file();
    if (!mine) return;
    setKeeping(true);
    keepFile(mine).then(
      (id) => {
        go({ id });
        say('The file is kept on this server. The address of this page is now a link to it.');
      },
      (error: unknown) => say(`Cannot keep the file: ${error instanceof Error ? error.message : String(error)}`),
    ).finally(() => setKeeping(false));
  };
  let choose: () => void = () => undefined;
  createKeys(() => ({ o: () => choose() }));

  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>File</h1>
        <Show when={name()}>
          {(text) => <span class="facts file-name" title={text()}><b>{text()}</b></span>}
        </Show>
        <Show when={data.look.data()}>
          {(look) => (
            <Picker
              id="pick-type"
              label="Profile"
              placeholder="Find a profile type"
              value={look().type.id}
              shown={look().type.label}
              choices={look().types.map(({ id, label, group }) => ({ value: id, label, group, hint: id }))}
              onPick={(of) => go({ ...clear, of })}
            />
          )}
        </Show>
        <Show when={name() !== ''}>
          <button type="button" class="button" aria-pressed={comparing()} onClick={() => go({ compare: comparing() ? 'no' : 'stored', focus: '' })}>Compare with stored profiles</button>
        </Show>
        <span class="grow" />
        <Show when={name() !== '' && at.id() === ''}>
          <button type="button" class="button" disabled={keeping() || !data.look.data()} title="Keep the file, so that it has a link" onClick={keep}>{keeping() ? 'Keeping…' : 'Keep on this server'}</button>
        </Show>
        <Show when={at.id() !== ''}><Share href={url.href({})} pinned={comparing() && time.moves() ? url.href({ ...absolute(time.range()), refresh: null }) : null} /></Show>
        <FileChooser onFile={take} ready={(open) => (choose = open)} />
        <Show when={name() !== ''}><button type="button" class="button" onClick={close}>Close</button></Show>
      </div>
      <div class="progress" data-on={data.look.pending() || keeping()} />
      <Show when={comparing() && name() !== ''}><Baseline url={url} time={time} selection={selection} look={data.look.data()} /></Show>
      <Show when={data.look.data() && data.look.error()}>
        {(error) => <div class="banner" role="alert"><span>The refresh failed, older data is shown: {error().message}</span><button type="button" class="button" onClick={data.look.retry}>Try again</button></div>}
      </Show>
      <Switch>
        <Match when={name() === ''}><Landing href={(id) => url.href({ ...clear, id })} /></Match>
        <Match when={!data.look.data() && data.look.error()}>{(error) => <div class="fill"><Unread name={name()} error={error()} retry={data.look.retry} /></div>}</Match>
        <Match when={!data.look.data()}><div class="fill" aria-busy="true" /></Match>
        <Match when={data.look.data()}>{(look) => <Shown url={url} data={data} look={look()} name={name()} />}</Match>
      </Switch>
    </main>
  );
}

/** The flame graph of the file, or its difference from stored profiles, each with its table. */
function Shown(props: { url: AdhocUrl; data: AdhocModel; look: Look; name: string }) {
  const { at, go } = props.url;
  const amount = (value: number): string => formatValue(value, props.look.type.unit);
  return (
    <Switch>
      <Match when={props.look.sides && props.look.sides.left.sum === 0}>
        <div class="fill"><NothingInRange nearest={undefined} what={`No ${props.look.type.label} profiles of ${at.service()} in this range`} onRange={go} /></div>
      </Match>
      <Match when={props.look.sides}>
        {(sides) => (
          <DiffPane flame={props.look.flame} sides={sides()} of={`${props.name} ${at.service()}`} by="share" share={props.data.share()} rate={null} amount={amount} changes={undefined} stale={props.data.look.pending()} at={at} onChange={go} />
        )}
      </Match>
      <Match when={props.look.flame.sum === 0}>
        <div class="fill"><Notice icon="empty" title={`All values are zero: this file has no ${props.look.type.label}`}><p>Another profile type of the file may have values.</p></Notice></div>
      </Match>
      <Match when={props.data.flame.data()}>
        {(answer) => (
          <>
            <Show when={answer().gone && at.focus() !== ''}>
              <div class="banner" role="status"><span>The zoomed frame is not in this file. All frames are shown.</span><button type="button" class="button" onClick={() => go({ focus: '' }, { replace: true })}>Reset zoom</button></div>
            </Show>
            <div class="file-facts facts">
              <span>{props.look.type.label} <Amount value={answer().flame.sum} unit={props.look.type.unit} /></span>
            </div>
            <MergedPane flame={answer().flame} of={`${props.name} ${props.look.type.id}`} amount={amount} stale={props.data.look.pending()} at={at} onChange={go} />
          </>
        )}
      </Match>
    </Switch>
  );
}

/** The bar that selects the stored profiles to compare the file with. */
function Baseline(props: { url: AdhocUrl; time: RangeModel; selection: Selection; look: Look | undefined }) {
  const { at, go } = props.url;
  const { time, selection } = props;
  const { services } = createCatalogue(selection);
  const names = createMemo(() => {
    const type = props.look?.type.id ?? '';
    const all = [...(services.data() ?? [])];
    const having = all.filter(([, types]) => types.includes(type));
    return (having.length > 0 ? having : all).map(([name]) => name);
  });
  createEffect(on([names, at.service], ([known, service]) => {
    if (service === '' && known[0] !== undefined) go({ service: known[0] }, { replace: true });
  }));
  return (
    <>
      <div class="bar" role="group" aria-label="Stored profiles">
        <span class="muted">Baseline: stored profiles of</span>
        <Picker id="pick-service" label="Service" placeholder="Find a service" value={at.service()} shown={at.service()} loading={services.pending()} error={services.error()} choices={names().map((name) => ({ value: name, label: name }))} onPick={(service) => go({ service, q: '' })} />
        <Filters service={at.service()} matchers={selection.matchers().list} range={time.range()} onChange={(matchers) => go({ q: printMatchers(matchers) })} />
        <span class="grow" />
        <TimeControls from={at.from() || 'now-1h'} until={at.until()} range={time.range()} name={time.since()} seconds={time.seconds()} onRange={go} onSeconds={(refresh) => go({ refresh }, { replace: true })} onRefresh={time.refresh} />
      </div>
      <Show when={services.data()?.size === 0}>
        <div class="banner" role="status"><span>No profiles are stored in this range. Choose another range to compare the file with.</span></div>
      </Show>
    </>
  );
}

/** The view before a file is chosen: the supported formats and the files that the server keeps. */
function Landing(props: { href: (id: string) => string }) {
  const kept = createKept(() => 1);
  return (
    <div class="content" tabindex="0" role="region" aria-label="Choose a file">
      <Notice icon="file" title="Drop a profile anywhere on this page, or choose one">
        <p>This server parses the file and does not keep it. You can look at it, or compare it with stored profiles.</p>
        <FileFormats />
        <Show when={kept.data()?.length}>
          <section class="kept" aria-label="Kept files">
            <h3>Kept on this server</h3>
            <ul>
              <For each={kept.data()}>
                {({ id, name, uploaded }) => <li><a href={props.href(id)} onClick={follow}>{name || id}</a> <span class="muted">{formatMoment(uploaded)}</span></li>}
              </For>
            </ul>
          </section>
        </Show>
      </Notice>
    </div>
  );
}

/** The reason why the file cannot be shown: its format is not supported, the server does not store it any more, or the request failed. */
function Unread(props: { name: string; error: Error; retry: () => void }) {
  const refused = (): boolean => props.error instanceof ApiError && [400, 413, 422].includes(props.error.status);
  const gone = (): boolean => props.error instanceof ApiError && props.error.status === 404;
  return (
    <Switch fallback={<Failure what={`Cannot read ${props.name}`} error={props.error} retry={props.retry} />}>
      <Match when={refused()}>
        <Notice icon="alert" error title={`${props.name} is not a supported profile`}>
          <p>{props.error.message}</p>
          <FileFormats />
        </Notice>
      </Match>
      <Match when={gone()}>
        <Notice icon="alert" error title={`${props.name} does not exist, or is no longer kept`}><p>{props.error.message}. The server deletes the oldest kept files to make room for newer ones.</p></Notice>
      </Match>
    </Switch>
  );
}
