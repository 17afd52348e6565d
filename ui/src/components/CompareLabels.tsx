// Compares two values of one label. The user selects the label, the baseline's value, and the comparison's value. If a label
// contains versions, a button selects the last two.

import { createSignal, Match, Show, Switch } from 'solid-js';
import { labelNames, labelValues } from '../lib/api.ts';
import { createLoader } from '../lib/loader.ts';
import type { Range } from '../lib/time.ts';
import type { Versions } from '../models/versions.ts';
import { Icon } from './Icon.tsx';
import { Popover } from './Popover.tsx';
import { Suggest } from './Suggest.tsx';

export interface CompareLabelsProps {
  /** The selector that both sides share. */
  selector: string;
  range: Range;
  versions: Versions | null;
  onPick: (label: string, before: string, after: string) => void;
}

export function CompareLabels(props: CompareLabelsProps) {
  return (
    <>
      <Show when={props.versions}>
        {(found) => (
          <button type="button" class="button" title={`Compare ${found().label} ${found().before} with ${found().after}`} onClick={() => props.onPick(found().label, found().before, found().after)}>
            <span class="key">{found().label}</span><span class="value">{found().before} → {found().after}</span>
          </button>
        )}
      </Show>
      <Popover class="button square" label="Two label values" title="Compare two values of a label" trigger={<Icon name="labels" />}>
        {(close) => <Values {...props} close={close} />}
      </Popover>
    </>
  );
}

function Values(props: CompareLabelsProps & { close: () => void }) {
  const [label, setLabel] = createSignal('');
  const [before, setBefore] = createSignal<string>();
  const where = { selector: props.selector, range: props.range };
  const names = createLoader(() => where, async ({ selector, range }, signal) => (await labelNames(selector, range, signal)).filter((name) => name !== 'service_name'));
  const values = createLoader(() => (label() === '' ? null : { name: label(), ...where }), ({ name, selector, range }, signal) => labelValues(name, selector, range, signal));
  const choices = () => (values.data() ?? []).filter((value) => value !== before()).map((value) => ({ value, label: value }));
  const state = () => ({ loading: values.pending(), error: values.error() });
  return (
    <div class="chip-editor">
      <Switch>
        <Match when={label() === ''}>
          <Suggest label="Label to compare by" placeholder="Label" loading={names.pending()} error={names.error()} choices={(names.data() ?? []).map((name) => ({ value: name, label: name }))} onChoose={setLabel} />
        </Match>
        <Match when={before() === undefined}>
          <p class="step">{label()} of the baseline</p>
          <Suggest label="Value of the baseline" placeholder="Baseline" {...state()} choices={choices()} onChoose={setBefore} />
        </Match>
        <Match when={true}>
          <p class="step">{label()} of the comparison</p>
          <Suggest
            label="Value of the comparison"
            placeholder="Comparison"
            {...state()}
            choices={choices()}
            onChoose={(after) => {
              props.close();
              props.onPick(label(), before() ?? '', after);
            }}
          />
        </Match>
      </Switch>
    </div>
  );
}
