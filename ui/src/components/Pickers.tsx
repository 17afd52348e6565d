// The pickers of the service and of the profile type.

import { createMemo } from 'solid-js';
import { createKeys } from '../lib/keys.ts';
import { GROUPS, type ProfileType } from '../lib/profile-types.ts';
import type { Catalogue } from '../models/catalogue.ts';
import { Picker } from './Picker.tsx';

export interface PickersProps {
  catalogue: Catalogue;
  service: string;
  type: ProfileType | null;
  /** Called with the new service. `keeps` is true if it also has the shown profile type. */
  onService: (service: string, keeps: boolean) => void;
  onType: (type: string) => void;
}

const open = (id: string) => (): void => document.getElementById(id)?.click();

export function Pickers(props: PickersProps) {
  const all = props.catalogue.services;
  const types = createMemo(() => {
    const known = props.catalogue.types();
    const ambiguous = (label: string): boolean => known.filter((type) => type.label === label).length > 1;
    const choices = known.map((type) => ({ value: type.id, label: type.label, group: type.group, hint: ambiguous(type.label) ? type.id : '' }));
    return choices.sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group));
  });
  createKeys(() => ({ s: open('pick-service'), p: open('pick-type') }));
  return (
    <>
      <Picker
        id="pick-service"
        label="Service"
        placeholder="Find a service"
        value={props.service}
        shown={props.service}
        loading={all.pending()}
        choices={[...(all.data()?.keys() ?? [])].map((name) => ({ value: name, label: name }))}
        onPick={(service) => props.onService(service, all.data()?.get(service)?.includes(props.type?.id ?? '') ?? false)}
      />
      <Picker
        id="pick-type"
        label="Profile"
        placeholder="Find a profile type"
        value={props.type?.id ?? ''}
        shown={props.type?.label ?? ''}
        loading={all.pending()}
        choices={types()}
        onPick={(type) => props.onType(type)}
      />
    </>
  );
}
