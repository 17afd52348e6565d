// The bar of a view with a selection: service, profile type, filters, the controls of the view, the range.

import { Show, type JSX } from 'solid-js';
import type { Matcher } from '../lib/selector.ts';
import type { Range } from '../lib/time.ts';
import type { Catalogue } from '../models/catalogue.ts';
import type { RangeModel } from '../models/range.ts';
import type { Selection } from '../models/selection.ts';
import { Filters } from './Filters.tsx';
import { Pickers } from './Pickers.tsx';
import { Share } from './Share.tsx';
import { TimeControls } from './TimeControls.tsx';

export interface SelectionBarProps {
  catalogue: Catalogue;
  selection: Selection;
  time: RangeModel;
  from: string;
  until: string;
  busy: boolean;
  /** Address of the shown state. `pinned` is the same address with an absolute range; null if the range does not move with the present. */
  href: string;
  pinned: string | null;
  /** Controls of the view. */
  children?: JSX.Element;
  onService: (service: string, keeps: boolean) => void;
  onType: (type: string) => void;
  onFilters: (matchers: Matcher[]) => void;
  onRange: (range: { from: string; until: string }) => void;
  onSeconds: (seconds: number) => void;
}

export function SelectionBar(props: SelectionBarProps) {
  const { selection, time } = props;
  const range = (): Range => time.range();
  return (
    <>
      <div class="bar">
        <Pickers catalogue={props.catalogue} service={selection.service()} type={selection.type()} onService={props.onService} onType={props.onType} />
        <Filters service={selection.service()} matchers={selection.matchers().list} range={range()} onChange={(matchers) => props.onFilters(matchers)} />
        {props.children}
        <span class="grow" />
        <TimeControls from={props.from || 'now-1h'} until={props.until} range={range()} name={time.since()} seconds={time.seconds()} onRange={props.onRange} onSeconds={props.onSeconds} onRefresh={time.refresh} />
        <Share href={props.href} pinned={props.pinned} />
      </div>
      <div class="progress" data-on={props.busy} />
      <Show when={selection.matchers().error}>
        {(error) => <div class="banner" role="alert"><span>Cannot parse the filters in the link: {error()}</span><button type="button" class="button" onClick={() => props.onFilters([])}>Remove them</button></div>}
      </Show>
    </>
  );
}
