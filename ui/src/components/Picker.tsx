// A button that shows what is picked and opens a list to pick another.

import { Icon } from './Icon.tsx';
import { Popover } from './Popover.tsx';
import { Suggest, type Choice } from './Suggest.tsx';

export interface PickerProps {
  id?: string;
  /** `Service`, `Profile type`: before the value and as the name of the button. */
  label: string;
  value: string;
  /** What is shown for the value. */
  shown: string;
  choices: readonly Choice[];
  placeholder: string;
  loading?: boolean;
  /** Why there are no choices. */
  error?: Error | undefined;
  plain?: boolean;
  onPick: (value: string) => void;
}

export function Picker(props: PickerProps) {
  return (
    <Popover
      id={props.id ?? ''}
      label={props.label}
      named
      haspopup="listbox"
      class="button"
      trigger={
        <>
          <span class="key">{props.label}</span>
          <span class="value">{props.shown || '–'}</span>
          <Icon name="down" class="chevron" />
        </>
      }
    >
      {(close) => (
        <Suggest
          label={props.label}
          placeholder={props.placeholder}
          choices={props.choices}
          selected={props.value}
          loading={props.loading ?? false}
          error={props.error}
          onChoose={(value) => {
            close();
            props.onPick(value);
          }}
        />
      )}
    </Popover>
  );
}
