// A selection: a service, a profile type, label filters and a range; and the query that they make.

import { createMemo, type Accessor } from 'solid-js';
import { profileType, type ProfileType } from '../lib/profile-types.ts';
import { parseMatchers, printSelector, type Matcher } from '../lib/selector.ts';
import type { Range } from '../lib/time.ts';

export interface Query {
  type: ProfileType;
  selector: string;
  range: Range;
}

/** The selection as in the URL. */
export interface SelectionText {
  service: Accessor<string>;
  /** Profile type id. */
  type: Accessor<string>;
  /** Other matchers: a selector without its braces. */
  q: Accessor<string>;
}

export interface Selection {
  service: Accessor<string>;
  type: Accessor<ProfileType | null>;
  /** The filters, or the reason why they cannot be parsed. */
  matchers: Accessor<{ list: Matcher[]; error: string }>;
  range: Accessor<Range>;
  /** The query; null while the service or the type is not known. */
  query: Accessor<Query | null>;
}

export const serviceSelector = (service: string, others: readonly Matcher[] = []): string => printSelector([{ name: 'service_name', op: '=', value: service }, ...others]);

/** Whether two queries are the same, with the same range object. A refresh makes a new range object. */
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
