// Label filters as chips: label, operator, value. The editor of a filter suggests the labels and values of the stored profiles that
// match the other filters.

import { createSignal, For, Show } from 'solid-js';
import { labelNames, labelValues } from '../lib/api.ts';
import { createLoader } from '../lib/loader.ts';
import { OPERATORS, printSelector, type Matcher, type Operator } from '../lib/selector.ts';
import type { Range } from '../lib/time.ts';
import { Icon } from './Icon.tsx';
import { Popover } from './Popover.tsx';
import { Radios } from './Radios.tsx';
import { Suggest } from './Suggest.tsx';

export interface FiltersProps {
  service: string;
  matchers: readonly Matcher[];
  range: Range;
  onChange: (matchers: Matcher[]) => void;
}

export function Filters(props: FiltersProps) {
  const others = (index: number): string => {
    const rest = props.matchers.filter((_, at) => at !== index);
    return printSelector(props.service ? [{ name: 'service_name', op: '=', value: props.service }, ...rest] : rest);
  };
  return (
    <div class="chips" role="group" aria-label="Label filters">
      <For each={props.matchers}>
        {(matcher, index) => (
          <span class="chip">
            <Popover
              class="edit"
              label={`Filter ${matcher.name}`}
              named
              trigger={
                <>
                  <span class="muted">{matcher.name}</span>
                  <span class="op">{matcher.op}</span>
                  <span class="text">{matcher.value || '""'}</span>
                </>
              }
            >
              {(close) => (
                <Editor
                  start={matcher}
                  selector={others(index())}
                  range={props.range}
                  onDone={(changed) => {
                    close();
                    props.onChange(props.matchers.map((old, at) => (at === index() ? changed : old)));
                  }}
                />
              )}
            </Popover>
            <button type="button" class="remove" aria-label={`Remove filter ${matcher.name}`} onClick={() => props.onChange(props.matchers.filter((_, at) => at !== index()))}>
              <Icon name="close" />
            </button>
          </span>
        )}
      </For>
      <Popover class="button plain" id="add-filter" label="Filter" trigger={<><Icon name="plus" />Filter</>}>
        {(close) => (
          <Editor
            selector={others(-1)}
            range={props.range}
            onDone={(added) => {
              close();
              props.onChange([...props.matchers, added]);
            }}
          />
        )}
      </Popover>
    </div>
  );
}

function Editor(props: { start?: Matcher; selector: string; range: Range; onDone: (matcher: Matcher) => void }) {
  const [name, setName] = createSignal(props.start?.name ?? '');
  const [op, setOp] = createSignal<Operator>(props.start?.op ?? '=');
  const where = { selector: props.selector, range: props.range };
  const names = createLoader(() => where, async ({ selector, range }, signal) => (await labelNames(selector, range, signal)).filter((label) => label !== 'service_name'));
  // The values are loaded once a label is chosen.
  const values = createLoader(() => (name() === '' ? null : { label: name(), ...where }), ({ label, selector, range }, signal) => labelValues(label, selector, range, signal));
  return (
    <div class="chip-editor">
      <Show
        when={name()}
        fallback={
          <Suggest
            label="Label"
            placeholder="Label"
            free
            loading={names.pending()}
            error={names.error()}
            choices={(names.data() ?? []).map((label) => ({ value: label, label }))}
            onChoose={setName}
          />
        }
      >
        <div class="head">
          <button type="button" class="button" title="Choose another label" onClick={() => setName('')}>
            <span class="value">{name()}</span>
          </button>
          <Radios label="Operator" value={op()} choices={OPERATORS.map((choice) => ({ value: choice.op, label: choice.label, text: choice.op }))} onChoose={setOp} />
        </div>
        <Suggest
          label="Value"
          placeholder={op().endsWith('~') ? 'Regular expression' : 'Value'}
          free
          initial={props.start?.value ?? ''}
          loading={values.pending()}
          error={values.error()}
          choices={(values.data() ?? []).map((value) => ({ value, label: value }))}
          onChoose={(value) => props.onDone({ name: name(), op: op(), value })}
        />
      </Show>
    </div>
  );
}
