// A tour in five steps, which shows the views for the most frequent questions. Keys: arrows, Escape.

import { createSignal, onMount, Show } from 'solid-js';
import { Icon, type IconName } from './Icon.tsx';

interface Step {
  icon: IconName;
  title: string;
  text: string;
  /** Path of the view for this step. */
  to: string;
  label: string;
}

export interface TourProps {
  /** Returns the address of a view by its path. */
  href: (path: string) => string;
  onFollow: (event: MouseEvent & { currentTarget: HTMLAnchorElement }) => void;
  onClose: () => void;
}

const STEPS: readonly [Step, ...Step[]] = [
  { icon: 'services', title: 'Which services use the most?', text: 'Services shows each service with its share of CPU and memory, and its use over time, the largest first. A click on a service opens its profile.', to: '', label: 'Services' },
  { icon: 'profile', title: 'Which function is it?', text: 'In Profile, the width of a frame is its total value, with all its callees. A click zooms in, Esc goes up, / searches. The table beside it sorts functions by their self value. Drag in the chart to select a shorter time.', to: 'profile', label: 'Profile' },
  { icon: 'compare', title: 'Did the release make it worse?', text: 'Compare compares two times, versions or label values. Red frames have grown, green frames have shrunk. A list above the graph shows the increases beyond noise.', to: 'compare', label: 'Compare' },
  { icon: 'file', title: 'What is in a single profile?', text: 'Samples has a dot for each profile, and you can download each as pprof. Drop a profile file on any page to look at it; the server does not keep it.', to: 'samples', label: 'Samples' },
  { icon: 'send', title: 'How do I send my profiles?', text: 'The view "Send profiles here" has the instructions for each language, with the address of this server. The address of every page is a link that shows the same to others. The key ? lists the keyboard shortcuts.', to: 'send', label: 'Send profiles here' },
];

export default function Tour(props: TourProps) {
  let dialog!: HTMLDialogElement;
  const [at, setAt] = createSignal(0);
  const step = (): Step => STEPS[at()] ?? STEPS[0];
  const last = (): boolean => at() === STEPS.length - 1;
  const move = (by: number): void => void setAt((now) => Math.max(0, Math.min(STEPS.length - 1, now + by)));
  onMount(() => dialog.showModal());
  const keys = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    move(by);
  };
  return (
    <dialog ref={dialog} class="tour" aria-labelledby="tour-title" onClose={() => props.onClose()} onKeyDown={keys} onClick={(event) => event.target === dialog && dialog.close()}>
      <header>
        <span class="muted">{at() + 1} of {STEPS.length}</span>
        <button type="button" class="button plain square" aria-label="Close" onClick={() => dialog.close()}><Icon name="close" /></button>
      </header>
      <div class="tour-body" aria-live="polite">
        <Icon name={step().icon} />
        <h2 id="tour-title">{step().title}</h2>
        <p>{step().text}</p>
      </div>
      <div class="tour-actions">
        <a class="button" href={props.href(step().to)} onClick={(event) => {
          props.onFollow(event);
          dialog.close();
        }}>Open {step().label}</a>
        <span class="spring" />
        <button type="button" class="button" disabled={at() === 0} onClick={() => move(-1)}>Back</button>
        <Show when={!last()} fallback={<button type="button" class="button primary" autofocus onClick={() => dialog.close()}>Done</button>}>
          <button type="button" class="button primary" autofocus onClick={() => move(1)}>Next</button>
        </Show>
      </div>
    </dialog>
  );
}
