// The last two releases: the two values of a version label that were first seen most recently.

import { createMemo, type Accessor } from 'solid-js';
import { createLoader, type Loader } from '../lib/loader.ts';
import { chartSeries } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import { serviceSelector, type Selection } from './selection.ts';

export interface Versions {
  label: string;
  before: string;
  after: string;
}

/** Usual names of version labels, the most precise first. */
const LABELS = [/^(app_|service_)?version$/, /^service\.version$/, /version$/, /^(service_)?(git_ref|revision|commit|sha)$/, /^(image_?tag|release|build)$/];
const POINTS = 60;

export const versionLabel = (labels: readonly string[]): string | undefined => LABELS.flatMap((known) => labels.filter((label) => known.test(label)))[0];

export function createVersions({ service, type, matchers }: Selection, range: Accessor<Range>, labels: Accessor<readonly string[] | undefined>): Loader<Versions | null> {
  const wanted = createMemo(() => {
    const label = versionLabel(labels() ?? []);
    const of = type();
    if (label === undefined || of === null || service() === '') return null;
    const others = matchers().list.filter(({ name }) => name !== label);
    return { label, type: of, selector: serviceSelector(service(), others), range: range() };
  }, null, { equals: (a, b) => a === b || (a !== null && b !== null && a.label === b.label && a.type.id === b.type.id && a.selector === b.selector && a.range === b.range) });
  return createLoader(wanted, async ({ label, type: of, selector, range: when }, signal) => {
    const { lines } = await chartSeries(of, selector, when, [label], POINTS, signal);
    return lastTwo(label, lines.flatMap(({ labels: its, points }) => (its[label] ? [{ value: its[label], first: points[0]?.[0] ?? 0 }] : [])));
  });
}

/** Returns the two values that were first seen most recently, the older one as `before`. If several values were first seen at the same time, the higher version number counts as newer. */
export function lastTwo(label: string, seen: readonly { value: string; first: number }[]): Versions | null {
  const [before, after] = [...seen].sort((a, b) => a.first - b.first || a.value.localeCompare(b.value, 'en', { numeric: true })).slice(-2);
  return before && after ? { label, before: before.value, after: after.value } : null;
}
