// A button that shows the picked value and opens a list of the choices.

import { Icon } from './Icon.tsx';
import { Popover } from './Popover.tsx';
import { Suggest, type Choice } from './Suggest.tsx';

export interface PickerProps {
  id?: string;
  /** Text before the value, for example `Service`. For screen readers, it is also the name of the list. */
  label: string;
  value: string;
  /** Text that is shown for the value. */
  shown: string;
  choices: readonly Choice[];
  placeholder: string;
  loading?: boolean;
  /** Set if the choices could not be loaded. */
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
