// What is looked at: a service, a profile type, filters by label, a range; and the question that these make.

import { createMemo, type Accessor } from 'solid-js';
import { profileType, type ProfileType } from '../lib/profile-types.ts';
import { parseMatchers, printSelector, type Matcher } from '../lib/selector.ts';
import type { Range } from '../lib/time.ts';

export interface Query {
  type: ProfileType;
  selector: string;
  range: Range;
}

/** How the URL names a selection. */
export interface SelectionText {
  service: Accessor<string>;
  /** Profile type id. */
  type: Accessor<string>;
  /** Other matchers, the inside of a selector. */
  q: Accessor<string>;
}

export interface Selection {
  service: Accessor<string>;
  type: Accessor<ProfileType | null>;
  /** The filters, and why they cannot be read. */
  matchers: Accessor<{ list: Matcher[]; error: string }>;
  range: Accessor<Range>;
  /** Null as long as service or type are not known. */
  query: Accessor<Query | null>;
}

export const serviceSelector = (service: string, others: readonly Matcher[] = []): string => printSelector([{ name: 'service_name', op: '=', value: service }, ...others]);

/** The same stretch of the same thing, and not asked anew. */
export const sameQuery = (a: Query | null, b: Query | null): boolean => a === b || (a !== null && b !== null && a.type.id === b.type.id && a.selector === b.selector && a.range === b.range);

export function createSelection({ service, type: typeId, q }: SelectionText, range: Accessor<Range>): Selection {
  const matchers = createMemo<{ list: Matcher[]; error: string }>(() => {
    try {
      return { list: parseMatchers(q()), error: '' };
    } catch (error) {
      return { list: [], error: error instanceof Error ? error.message : String(error) };
    }
  });
  const type = createMemo(() => (typeId() === '' ? null : profileType(typeId())));
  const query = createMemo<Query | null>(
    () => {
      const wanted = type();
      return service() === '' || wanted === null ? null : { type: wanted, selector: serviceSelector(service(), matchers().list), range: range() };
    },
    null,
    { equals: sameQuery },
  );
  return { service, type, matchers, range, query };
}
