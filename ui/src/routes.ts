// The views of the page, in the order of the rail. A new view needs an address in `urls.ts`, a component in `views`, an icon, and
// a line here.

import type { Component } from 'solid-js';
import type { KeyHelp } from './components/Help.tsx';
import type { IconName } from './components/Icon.tsx';
import { HAS_COLLECTOR } from './lib/base.ts';
import { ADHOC, COMPARE, LABELS, PIPELINE, PROFILE, SAMPLES, SEND, SERVICES, SQL, STATUS, type Address } from './urls.ts';

export interface Route {
  address: Address;
  label: string;
  icon: IconName;
  /** Keys of the view, for the list of keyboard shortcuts. */
  keys: readonly KeyHelp[];
  /** Loads the component when the view is opened. */
  view: () => Promise<{ default: Component }>;
}

const TIME_KEYS: readonly KeyHelp[] = [['Earlier, later', ['[', ']']], ['Refresh', ['r']]];

const FLAME_KEYS: readonly KeyHelp[] = [
  ['Search frames', ['/']],
  ['Next, previous match', ['n', 'N']],
  ['Zoom to frame', ['click', 'Enter']],
  ['Zoom out one frame; clear search and selection', ['Esc']],
  ['Move between frames or rows', ['←', '↑', '↓', '→']],
  ['Zoom to the function of a row', ['z']],
  ['Menu of a frame or row', ['right click', '⇧F10']],
  ['Graph and table, graph only, table only', ['1', '2', '3']],
  ['Callers and callees of a frame', ['c', 'double click']],
  ['Only stacks with this function; hide it', ['o', 'x']],
  ['Only stacks with a match of the search; hide all matches', ['O', 'X']],
  ['Only the package of this function', ['k']],
  ['Invert; collapse recursion', ['i', 'g']],
  ['Root at the top or bottom', ['f']],
  ['Remove all rules', ['0']],
  ['Flame graph; callers and callees', ['4', '5']],
];

/** Keys of flame graphs with one value for each frame. The view Compare, whose frames have two values, does not have these keys. */
const PART_KEYS: readonly KeyHelp[] = [
  ['Peek, call graph, lines', ['6', '7', '8']],
  ['Zoom the call graph', ['+', '-']],
];

const CHART_KEYS: readonly KeyHelp[] = [
  ['Move through the chart', ['←', '→']],
  ['Select a range of the chart, apply it', ['⇧←', '⇧→', 'Enter']],
];

export const pipeline: Route = {
  address: PIPELINE,
  label: 'Pipeline',
  icon: 'pipeline',
  keys: [
    ['Filter components', ['/']],
    ['Move between components or rows', ['←', '↑', '↓', '→']],
    ['Open a component; open its module', ['Enter', 'double click']],
    ['Close the panel; leave the module', ['Esc']],
    ['Graph, table', ['1', '2']],
    ['Zoom in, zoom out, zoom to fit', ['+', '-', '0']],
    ['Pause the live data', ['p']],
    ['Refresh', ['r']],
  ],
  view: () => import('./views/Pipeline.tsx'),
};

/** Returns the views of the server's page, with the pipeline if a collector runs in the same process. It is a function, so that the bundle of the collector's page does not contain the other views. */
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
    keys: [['Pick service, profile type', ['s', 'p']], ['Move between profiles', ['↑', '↓']], ['Open a profile', ['click', 'Enter']], ['Close the profile', ['Esc']], ...TIME_KEYS],
    view: () => import('./views/Samples.tsx'),
  },
  {
    address: SQL,
    label: 'SQL',
    icon: 'sql',
    keys: [['Run the statement', ['Ctrl Enter']], ['Complete a word', ['Ctrl Space', 'Tab']], ['Cancel the statement', ['Esc']]],
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
    keys: [['Choose a language or tool', ['↑', '↓']]],
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
