// The range of time: presets, two absolute ends, half a range back and forward, twice as wide, and refreshing.

import { createSignal, For, Show } from 'solid-js';
import { formatMoment } from '../lib/format.ts';
import { go, state } from '../lib/router.ts';
import { isRelative, PRESETS, shiftRange, toLocalInput, widenRange, type Range } from '../lib/time.ts';
import { Icon } from './Icon.tsx';
import { Menu } from './Menu.tsx';
import { Popover } from './Popover.tsx';

/** What a range is called: a preset, or its two ends. */
export function rangeName(from: string, until: string, range: Range): string {
  const preset = until === 'now' ? PRESETS.find((known) => known.from === from) : undefined;
  if (preset) return preset.label;
  if (until === 'now' && isRelative(from)) return `Last ${from.slice(4)}`;
  const sameDay = new Date(range.start).toDateString() === new Date(range.end).toDateString();
  const seconds = range.end - range.start < 300_000;
  const end = formatMoment(range.end, seconds);
  return `${formatMoment(range.start, seconds)} – ${sameDay ? end.split(' ').pop() : end}`;
}

export function TimeControls(props: { range: Range; busy: boolean; onRefresh: () => void }) {
  const name = (): string => rangeName(state().from, state().until, props.range);
  const present = (): boolean => state().until === 'now';
  return (
    <>
      <div class="group" role="group" aria-label="Time range">
        <button type="button" class="button square" aria-label="Earlier" title="Half a range back  [" onClick={() => go(shiftRange(props.range, -1, Date.now()))}>
          <Icon name="left" />
        </button>
        <Popover id="time-range" label={`Time range: ${name()}`} align="right" trigger={<><Icon name="clock" /><span class="value">{name()}</span><Icon name="down" class="chevron" /></>}>
          {(close) => <RangePanel range={props.range} close={close} />}
        </Popover>
        <button type="button" class="button square" aria-label="Later" title="Half a range forward  ]" disabled={present()} onClick={() => go(shiftRange(props.range, 1, Date.now()))}>
          <Icon name="right" />
        </button>
        <button type="button" class="button square wide-only" aria-label="Twice as long" title="Twice as long" onClick={() => go(widenRange(props.range, Date.now()))}>
          <Icon name="zoomOut" />
        </button>
      </div>
      <div class="group" role="group" aria-label="Refresh">
        <button type="button" class="button square" aria-label="Refresh now" title="Refresh now  r" onClick={() => props.onRefresh()}>
          <Icon name="refresh" />
        </button>
        <Popover label={`Refresh: ${state().refresh ? `every ${state().refresh} s` : 'off'}`} haspopup="menu" align="right" trigger={<><Show when={state().refresh > 0}><span class="value">{state().refresh} s</span></Show><Icon name="down" class="chevron" /></>}>
          {(close) => (
            <Menu
              label="Refresh"
              close={close}
              actions={[0, 5, 30].map((seconds) => ({
                label: seconds === 0 ? 'Off' : `Every ${seconds} s`,
                checked: state().refresh === seconds,
                run: () => go({ refresh: seconds }, { replace: true }),
              }))}
            />
          )}
        </Popover>
      </div>
    </>
  );
}

function RangePanel(props: { range: Range; close: () => void }) {
  const [from, setFrom] = createSignal(toLocalInput(props.range.start));
  const [until, setUntil] = createSignal(toLocalInput(props.range.end));
  const wrong = (): string => {
    const start = Date.parse(from());
    const end = Date.parse(until());
    if (Number.isNaN(start) || Number.isNaN(end)) return 'Both ends must be a date and a time';
    return end - start < 1000 ? 'The end must be after the start' : '';
  };
  const pick = (patch: { from: string; until: string }): void => {
    props.close();
    go(patch);
  };
  return (
    <div class="columns">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (wrong() === '') pick({ from: String(Date.parse(from())), until: String(Date.parse(until())) });
        }}
      >
        <label>
          From
          <input class="field" type="datetime-local" step="1" value={from()} onInput={(event) => setFrom(event.currentTarget.value)} />
        </label>
        <label>
          Until
          <input class="field" type="datetime-local" step="1" value={until()} aria-invalid={wrong() !== ''} onInput={(event) => setUntil(event.currentTarget.value)} />
        </label>
        <Show when={wrong()}><span class="muted" role="alert">{wrong()}</span></Show>
        <button type="submit" class="button primary" disabled={wrong() !== ''}>Apply</button>
      </form>
      <div class="menu">
        <For each={PRESETS}>
          {(preset) => (
            <button type="button" class="option" aria-pressed={state().from === preset.from && state().until === 'now'} data-active={state().from === preset.from && state().until === 'now'} onClick={() => pick({ from: preset.from, until: 'now' })}>
              <span class="text">{preset.label}</span>
            </button>
          )}
        </For>
      </div>
    </div>
  );
}
