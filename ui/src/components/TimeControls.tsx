// The controls of the time range: presets, two absolute ends, buttons that move the range by half its length or double it, the time zone,
// and the refresh.

import { createSignal, For, Show } from 'solid-js';
import { formatRange } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { printing } from '../lib/printing.ts';
import { isRelative, PRESETS, shiftRange, widenRange, type Range } from '../lib/time.ts';
import { fromInput, setZone, toInput, zone, zoneName, type Zone } from '../lib/zone.ts';
import { Icon } from './Icon.tsx';
import { Menu } from './Menu.tsx';
import { Popover } from './Popover.tsx';
import { Radios, type Radio } from './Radios.tsx';

const ZONES: readonly Radio<Zone>[] = [{ value: 'local', label: 'Time zone of this browser', text: 'Browser' }, { value: 'utc', label: 'UTC', text: 'UTC' }];

export interface TimeControlsProps {
  /** Start of the range as in the URL. */
  from: string;
  until: string;
  range: Range;
  /** Seconds between refreshes, 0 for none. */
  seconds: number;
  /** Name to show instead of the preset or the two ends of the range. */
  name?: string | undefined;
  onRange: (range: { from: string; until: string }) => void;
  onSeconds: (seconds: number) => void;
  onRefresh: () => void;
}

/** Returns the name of a range: its preset, or its two ends. */
export function rangeName(from: string, until: string, range: Range): string {
  const preset = until === 'now' ? PRESETS.find((known) => known.from === from) : undefined;
  if (preset) return preset.label;
  if (until === 'now' && isRelative(from)) return `Last ${from.slice(4)}`;
  return formatRange(range);
}

export function TimeControls(props: TimeControlsProps) {
  // In print, `Last hour` would not say which hour.
  const name = (): string => (printing() ? formatRange(props.range) : (props.name ?? rangeName(props.from, props.until, props.range)));
  const present = (): boolean => props.until === 'now';
  const earlier = (): void => props.onRange(shiftRange(props.range, -1, Date.now()));
  const later = (): void => {
    if (!present()) props.onRange(shiftRange(props.range, 1, Date.now()));
  };
  createKeys(() => ({ '[': earlier, ']': later, r: props.onRefresh }));
  return (
    <>
      <div class="group" role="group" aria-label="Time range">
        <button type="button" class="button square" aria-label="Earlier" title="Move back by half the range  [" onClick={earlier}>
          <Icon name="left" />
        </button>
        <Popover id="time-range" label={`Time range: ${name()} ${zoneName(props.range.end)}`} align="right" trigger={<><Icon name="clock" /><span class="value">{name()}</span> <span class="zone">{zoneName(props.range.end)}</span><Icon name="down" class="chevron" /></>}>
          {(close) => (
            <RangePanel
              from={props.from}
              until={props.until}
              range={props.range}
              onPick={(range) => {
                close();
                props.onRange(range);
              }}
            />
          )}
        </Popover>
        <button type="button" class="button square" aria-label="Later" title="Move forward by half the range  ]" disabled={present()} onClick={later}>
          <Icon name="right" />
        </button>
        <button type="button" class="button square wide-only" aria-label="Zoom out time range" title="Zoom out time range" onClick={() => props.onRange(widenRange(props.range, Date.now()))}>
          <Icon name="zoomOut" />
        </button>
      </div>
      <div class="group" role="group" aria-label="Refresh">
        <button type="button" class="button square" aria-label="Refresh now" title="Refresh now  r" onClick={() => props.onRefresh()}>
          <Icon name="refresh" />
        </button>
        <Popover label={`Refresh: ${props.seconds ? `every ${props.seconds} s` : 'off'}`} haspopup="menu" align="right" trigger={<><Show when={props.seconds > 0}><span class="value">{props.seconds} s</span></Show><Icon name="down" class="chevron" /></>}>
          {(close) => (
            <Menu
              label="Refresh"
              close={close}
              actions={[0, 5, 30].map((seconds) => ({
                label: seconds === 0 ? 'Off' : `Every ${seconds} s`,
                checked: props.seconds === seconds,
                run: () => props.onSeconds(seconds),
              }))}
            />
          )}
        </Popover>
      </div>
    </>
  );
}

function RangePanel(props: { from: string; until: string; range: Range; onPick: (range: { from: string; until: string }) => void }) {
  const [ends, setEnds] = createSignal({ from: toInput(props.range.start), until: toInput(props.range.end) });
  const wrong = (): string => {
    const start = fromInput(ends().from);
    const end = fromInput(ends().until);
    if (Number.isNaN(start) || Number.isNaN(end)) return 'Both ends must have a date and a time';
    return end - start < 1000 ? 'The end must be after the start' : '';
  };
  return (
    <div class="columns">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (wrong() === '') props.onPick({ from: String(fromInput(ends().from)), until: String(fromInput(ends().until)) });
        }}
      >
        <label>
          From
          <input class="field" type="datetime-local" step="1" value={ends().from} onInput={(event) => setEnds({ ...ends(), from: event.currentTarget.value })} />
        </label>
        <label>
          Until
          <input class="field" type="datetime-local" step="1" value={ends().until} aria-invalid={wrong() !== ''} onInput={(event) => setEnds({ ...ends(), until: event.currentTarget.value })} />
        </label>
        <Show when={wrong()}><span class="muted" role="alert">{wrong()}</span></Show>
        <Radios
          label="Time zone"
          value={zone()}
          choices={ZONES}
          onChoose={(next) => {
            // The selected moments stay the same. The fields show them in the new time zone.
            const moments = [fromInput(ends().from), fromInput(ends().until)] as const;
            setZone(next);
            if (!moments.some(Number.isNaN)) setEnds({ from: toInput(moments[0]), until: toInput(moments[1]) });
          }}
        />
        <button type="submit" class="button primary" disabled={wrong() !== ''}>Apply</button>
      </form>
      <div class="menu">
        <For each={PRESETS}>
          {(preset) => (
            <button type="button" class="option" aria-pressed={props.from === preset.from && props.until === 'now'} data-active={props.from === preset.from && props.until === 'now'} onClick={() => props.onPick({ from: preset.from, until: 'now' })}>
              <span class="text">{preset.label}</span>
            </button>
          )}
        </For>
      </div>
    </div>
  );
}
