// The icons of the page, drawn as strokes on a 24 px grid. They are decoration: every control also has a name.

const PATHS = {
  services: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
  profile: 'M3 5h18v4H3zM3 11h11v4H3zM16 11h5v4h-5zM3 17h6v3H3zM11 17h3v3h-3z',
  compare: 'M9 4v16M4 8h5M4 12h5M4 16h5M15 4v16M15 9h5M15 14h5',
  labels: 'M4 4h8l8 8-8 8-8-8zM8 8v.1',
  samples: 'M4 20V4M4 20h16M8 15v.1M11 9v.1M14 13v.1M17 7v.1M18 16v.1',
  sql: 'M4 6l5 6-5 6M11 18h9',
  file: 'M6 3h8l5 5v13H6zM14 3v5h5M9.5 14.5l2.5-2.5 2.5 2.5M12 12v6',
  send: 'M4 12l16-8-6 16-3-7zM11 13l9-9',
  status: 'M4 12h4l2.5-7 4 14L17 12h3',
  swap: 'M4 8h14l-4-4M20 16H6l4 4',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  system: 'M3 5h18v11H3zM8 20h8M12 16v4',
  help: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1 1-1.1 1.8M12 16.8v.1',
  down: 'M6 9l6 6 6-6',
  up: 'M6 15l6-6 6 6',
  left: 'M15 6l-6 6 6 6',
  right: 'M9 6l6 6-6 6',
  close: 'M6 6l12 12M18 6L6 18',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  fit: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  pipeline: 'M3 4h6v5H3zM15 9.5h6v5h-6zM3 15h6v5H3zM9 6.5h3v11H9M12 12h3',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4l13 8-13 8z',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  search: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2',
  refresh: 'M20 11a8 8 0 0 0-14.3-4L4 9M4 4v5h5M4 13a8 8 0 0 0 14.3 4L20 15M20 20v-5h-5',
  zoomOut: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20M8 10.5h5',
  share: 'M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  download: 'M12 4v11M7 10.5l5 5 5-5M4 20h16',
  flip: 'M8 4v16M4 8l4-4 4 4M16 20V4M12 16l4 4 4-4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  both: 'M3 5h18v14H3zM13 5v14',
  flame: 'M3 5h18v4H3zM3 11h12v4H3zM3 17h6v3H3z',
  table: 'M3 5h18v14H3zM3 10h18M3 14.5h18M10 10v9',
  frames: 'M4 5h16M7 10h10M10 15h4M11.5 20h1',
  empty: 'M4 13l3-8h10l3 8v6H4zM4 13h5a3 3 0 0 0 6 0h5',
  alert: 'M12 4l9 16H3zM12 10v4M12 17v.1',
  key: 'M8 10.5a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 11.5L19.5 3M16 6.5l3 3M13 9.5l2 2',
  leave: 'M10 4H4v16h6M9 12h12M16.5 7.5L21 12l-4.5 4.5',
  compass: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM15.5 8.5l-2 5-5 2 2-5z',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon(props: { name: IconName; class?: string }) {
  return (
    <svg class={`icon ${props.class ?? ''}`} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[props.name]} />
    </svg>
  );
}
