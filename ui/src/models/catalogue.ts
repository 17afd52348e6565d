// The content of the store: services and their profile types, label names, and the reason if the selection has no profiles.

import { createEffect, createMemo, on, type Accessor } from 'solid-js';
import { labelNames, profileTypes, services } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { isCpu, sortTypes, type ProfileType } from '../lib/profile-types.ts';
import { didYouMean } from '../lib/suggest.ts';
import type { Range } from '../lib/time.ts';
import { serviceSelector, type Selection } from './selection.ts';

export type Absence =
  | { kind: 'nothing stored' }
  | { kind: 'nothing in range'; nearest: Range | null | undefined }
  | { kind: 'service elsewhere'; nearest: Range }
  | { kind: 'no such service'; similar: string[] };

export interface Catalogue {
  /** The types of each service that has data in the range. */
  services: Loader<Map<string, string[]>>;
  /** The types of the selected service, CPU first. */
  types: Accessor<ProfileType[]>;
  /** Labels of the selected profiles, without the service name. */
  labels: Loader<string[]>;
  /** True if the range has no profiles of the selected service, or no profiles at all. */
  missing: Accessor<boolean>;
  /** The reason why profiles are missing; loaded only if `missing` is true. */
  absence: Loader<Absence>;
}

/** Selects the first service and the first type if the link names none, and writes them to the URL, so that every state is a link. */
export function createDefaults({ services: all, types }: Catalogue, at: Record<'service' | 'type', Accessor<string>>, go: (patch: { service?: string; type?: string }, options: { replace: true }) => void): void {
  createEffect(on([all.data, at.service], ([known, service]) => {
    const first = known?.keys().next().value;
    if (service === '' && first !== undefined) go({ service: first }, { replace: true });
  }));
  createEffect(on([types, at.type], ([known, type]) => {
    if (type === '' && known[0]) go({ type: known[0].id }, { replace: true });
  }));
}

interface Missing {
  service: string;
  type: string;
  names: string[];
  range: Range;
}

export function createCatalogue({ service, type, query, range }: Selection): Catalogue {
  const all = createLoader(range, services);
  const types = createMemo(() => sortTypes(all.data()?.get(service()) ?? []));
  const labels = createLoader(query, async (wanted, signal) => (await labelNames(wanted.selector, wanted.range, signal)).filter((name) => name !== 'service_name'));
  const missing = createMemo<Missing | null>((before) => {
    const known = all.data();
    // During a refresh, a missing service stays missing.
    if (!known || all.pending()) return before && before.service === service() ? before : null;
    if (known.size > 0 && (service() === '' || known.has(service()))) return null;
    return { service: service(), type: type()?.id ?? '', names: [...known.keys()], range: range() };
  }, null);
  const absence = createLoader(missing, why);
  return { services: all, types, labels, missing: () => missing() !== null, absence };
}

async function why(wanted: Missing, signal: AbortSignal): Promise<Absence> {
  const stored = await profileTypes(null, signal);
  if (stored.length === 0 && wanted.names.length === 0) return { kind: 'nothing stored' };
  const id = wanted.type || stored.find(isCpu) || stored[0];
  const look = async (selector: string): Promise<Range | null | undefined> => (id ? nearestRange(id, selector, wanted.range, Date.now(), signal) : null);
  if (wanted.service !== '') {
    const nearest = await look(serviceSelector(wanted.service));
    if (nearest) return { kind: 'service elsewhere', nearest };
  }
  if (wanted.names.length === 0) return { kind: 'nothing in range', nearest: await look('{}') };
  return { kind: 'no such service', similar: didYouMean(wanted.service, wanted.names) };
}
