// The views of the page, in the order of the rail. To add one: its address in `urls.ts`, its component in
// `views`, its icon, and a line here.

import type { Component } from 'solid-js';
import type { KeyHelp } from './components/Help.tsx';
import type { IconName } from './components/Icon.tsx';
import { HAS_COLLECTOR } from './lib/base.ts';
import { ADHOC, COMPARE, LABELS, PIPELINE, PROFILE, SAMPLES, SEND, SERVICES, SQL, STATUS, type Address } from './urls.ts';

export interface Route {
  address: Address;
  label: string;
  icon: IconName;
  /** What its keys do, for the list of keys. */
  keys: readonly KeyHelp[];
  /** Its component, loaded when it is opened. */
  view: () => Promise<{ default: Component }>;
}

const TIME_KEYS: readonly KeyHelp[] = [['Earlier, later', ['[', ']']], ['Refresh', ['r']]];

const FLAME_KEYS: readonly KeyHelp[] = [
  ['Search frames', ['/']],
  ['Next, previous match', ['n', 'N']],
  ['Zoom to frame', ['click', 'Enter']],
  ['One frame up; clear', ['Esc']],
  ['Move between frames or rows', ['←', '↑', '↓', '→']],
  ['Zoom to the row of the table', ['z']],
  ['Menu of a frame or row', ['right click', '⇧F10']],
  ['Both, picture, table', ['1', '2', '3']],
  ['Callers and callees of a frame', ['c', 'double click']],
  ['Only stacks with it; hide it', ['o', 'x']],
  ['The same, with all that is searched', ['O', 'X']],
  ['Only its package', ['k']],
  ['Inverted; recursion as one frame', ['i', 'g']],
  ['Root on top or at the bottom', ['f']],
  ['All frames as they came', ['0']],
  ['Flame graph, callers and callees', ['4', '5']],
];

/** Of what has one value a frame. */
const PART_KEYS: readonly KeyHelp[] = [
  ['Peek, call graph, lines', ['6', '7', '8']],
  ['Zoom the call graph', ['+', '-']],
];

const CHART_KEYS: readonly KeyHelp[] = [
  ['Move through the chart', ['←', '→']],
  ['Select a range of the chart, take it', ['⇧←', '⇧→', 'Enter']],
];

export const pipeline: Route = {
  address: PIPELINE,
  label: 'Pipeline',
  icon: 'pipeline',
  keys: [
    ['Filter components', ['/']],
    ['Move between components or rows', ['←', '↑', '↓', '→']],
    ['Open a component; a module', ['Enter', 'double click']],
    ['Close the panel; leave the module', ['Esc']],
    ['Graph, table', ['1', '2']],
    ['Zoom in, out, show all', ['+', '-', '0']],
    ['Pause the live data', ['p']],
    ['Refresh', ['r']],
  ],
  view: () => import('./views/Pipeline.tsx'),
};

/** The server's page has the pipeline where a collector runs in the same process. A function, so that the collector's page, which has that alone, holds no more. */
export const serverRoutes = (): readonly Route[] => [
  {
    address: SERVICES,
    label: 'Services',
    icon: 'services',
    keys: [['Filter services', ['/']], ['Move through the table or the map', ['←', '↑', '↓', '→']], ['Open a service', ['Enter']], ...TIME_KEYS],
    view: () => import('./views/Services.tsx'),
  },
  {
    address: PROFILE,
    label: 'Profile',
    icon: 'profile',
    keys: [
      ['Pick service, profile type', ['s', 'p']],
      ...FLAME_KEYS,
      ...PART_KEYS,
      ...CHART_KEYS,
      ...TIME_KEYS,
    ],
    view: () => import('./views/Profile.tsx'),
  },
  {
    address: COMPARE,
    label: 'Compare',
    icon: 'compare',
    keys: [['Pick service, profile type', ['s', 'p']], ...FLAME_KEYS, ...CHART_KEYS, ...TIME_KEYS],
    view: () => import('./views/Compare.tsx'),
  },
  {
    address: LABELS,
    label: 'Labels',
    icon: 'labels',
    keys: [['Pick service, profile type', ['s', 'p']], ['Filter values', ['/']], ...TIME_KEYS],
    view: () => import('./views/Labels.tsx'),
  },
  {
    address: SAMPLES,
    label: 'Samples',
    icon: 'samples',
    keys: [['Pick service, profile type', ['s', 'p']], ['Move between profiles', ['↑', '↓']], ['Open a profile', ['click', 'Enter']], ['Close it', ['Esc']], ...TIME_KEYS],
    view: () => import('./views/Samples.tsx'),
  },
  {
    address: SQL,
    label: 'SQL',
    icon: 'sql',
    keys: [['Run', ['Ctrl Enter']], ['Complete', ['Ctrl Space', 'Tab']], ['Cancel', ['Esc']]],
    view: () => import('./views/Sql.tsx'),
  },
  {
    address: ADHOC,
    label: 'File',
    icon: 'file',
    keys: [['Open a file', ['o']], ...FLAME_KEYS, ...TIME_KEYS],
    view: () => import('./views/Adhoc.tsx'),
  },
  {
    address: SEND,
    label: 'Send profiles here',
    icon: 'send',
    keys: [['Choose a way', ['↑', '↓']]],
    view: () => import('./views/Send.tsx'),
  },
  {
    address: STATUS,
    label: 'Status',
    icon: 'status',
    keys: [['Refresh', ['r']]],
    view: () => import('./views/Status.tsx'),
  },
  ...(HAS_COLLECTOR ? [pipeline] : []),
];
