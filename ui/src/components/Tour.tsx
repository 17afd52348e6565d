// A tour of five steps: where the answers to the questions are that people come with. By keyboard: arrows, Escape.

import { createSignal, onMount, Show } from 'solid-js';
import { Icon, type IconName } from './Icon.tsx';

interface Step {
  icon: IconName;
  title: string;
  text: string;
  /** The view to see it in. */
  to: string;
  label: string;
}

export interface TourProps {
  /** The address of a view by its path. */
  href: (path: string) => string;
  onFollow: (event: MouseEvent & { currentTarget: HTMLAnchorElement }) => void;
  onClose: () => void;
}

const STEPS: readonly [Step, ...Step[]] = [
  { icon: 'services', title: 'Where does the fleet spend?', text: 'Services shows each with its share of CPU and memory and how that went, the largest first. A click on one opens its profile.', to: '', label: 'Services' },
  { icon: 'profile', title: 'Which function is it?', text: 'In Profile a frame is as wide as what it and all that it calls take. A click zooms in, Esc goes up, / searches; the table beside it sorts functions by what they take themselves. Drag in the chart to look at that time only.', to: 'profile', label: 'Profile' },
  { icon: 'compare', title: 'Did the release make it worse?', text: 'Compare holds two times, versions or labels against each other: red grew, green shrank, and a list above says what is more than noise.', to: 'compare', label: 'Compare' },
  { icon: 'file', title: 'Show me this very profile', text: 'Samples has a dot a profile, and pprof of each to download. A profile from elsewhere is dropped on any page: it is looked at and not kept.', to: 'samples', label: 'Samples' },
  { icon: 'send', title: 'And mine?', text: 'Send profiles here has the lines for each language, with the address of this server. The address of every page is a link that shows the same to somebody else, ? lists the keys.', to: 'send', label: 'Send profiles here' },
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
