// The label that services are grouped by. The labels are loaded when the list is opened.

import { labelNames } from '../lib/api.ts';
import { createLoader } from '../lib/loader.ts';
import type { Range } from '../lib/time.ts';
import { Icon } from './Icon.tsx';
import { Popover } from './Popover.tsx';
import { Suggest } from './Suggest.tsx';

export interface GroupByProps {
  label: string;
  range: Range;
  onPick: (label: string) => void;
}

export function GroupBy(props: GroupByProps) {
  return (
    <Popover label="Group by" named haspopup="listbox" trigger={<><span class="key">Group by</span><span class="value">{props.label || '–'}</span><Icon name="down" class="chevron" /></>}>
      {(close) => <Choices {...props} close={close} />}
    </Popover>
  );
}

function Choices(props: GroupByProps & { close: () => void }) {
  const names = createLoader(() => props.range, async (range, signal) => (await labelNames('{}', range, signal)).filter((name) => name !== 'service_name'));
  return (
    <Suggest
      label="Group by"
      placeholder="A label: namespace, team"
      choices={[{ value: '', label: 'No groups' }, ...(names.data() ?? []).map((name) => ({ value: name, label: name }))]}
      selected={props.label}
      loading={names.pending()}
      error={names.error()}
      onChoose={(label) => {
        props.close();
        props.onPick(label);
      }}
    />
  );
}
