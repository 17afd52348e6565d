// The notice for a range without the selected service, or without any profiles. It offers similar services, or the nearest range with
// profiles.

import { For, Match, Switch } from 'solid-js';
import type { Range } from '../lib/time.ts';
import type { Catalogue } from '../models/catalogue.ts';
import { Failure, Notice, NothingStored } from './Notice.tsx';
import { NothingInRange } from './NothingInRange.tsx';

export interface AbsentProps {
  catalogue: Catalogue;
  service: string;
  /** Address of the Services view. */
  home: string;
  /** Address of the view that explains how to send profiles. */
  send: string;
  onFollow: (event: MouseEvent & { currentTarget: HTMLAnchorElement }) => void;
  onService: (service: string) => void;
  onRange: (range: { from: string; until: string }) => void;
  onRefresh: () => void;
}

export function Absent(props: AbsentProps) {
  const absence = props.catalogue.absence;
  const nearest = (): Range | null | undefined => {
    const found = absence.data();
    return found && 'nearest' in found ? found.nearest : undefined;
  };
  const similar = (): string[] => {
    const found = absence.data();
    return found?.kind === 'no such service' ? found.similar : [];
  };
  const is = (kind: string): boolean => absence.data()?.kind === kind;
  return (
    <Switch>
      <Match when={absence.error()}>{(error) => <Failure what="Cannot find out what is stored" error={error()} retry={absence.retry} />}</Match>
      <Match when={is('nothing stored')}><NothingStored send={props.send} onFollow={props.onFollow} onRefresh={props.onRefresh} /></Match>
      <Match when={is('nothing in range')}><NothingInRange nearest={nearest()} onRange={props.onRange} /></Match>
      <Match when={is('service elsewhere')}><NothingInRange nearest={nearest()} what={`${props.service} has no profiles in this range`} onRange={props.onRange} /></Match>
      <Match when={is('no such service')}>
        <Notice
          icon="compass"
          title={`Service ${props.service} does not exist`}
          actions={
            <>
              <For each={similar()}>{(name) => <button type="button" class="button primary" onClick={() => props.onService(name)}>{name}</button>}</For>
              <a class="button" href={props.home} onClick={(event) => props.onFollow(event)}>All services</a>
            </>
          }
        >
          <p>{similar().length > 0 ? 'Did you mean one of these?' : 'No service has a similar name, and this service has no profiles in the last 30 days.'}</p>
        </Notice>
      </Match>
    </Switch>
  );
}
