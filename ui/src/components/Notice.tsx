// Empty and error states: what is the matter and what to do about it.

import { createSignal, For, onCleanup, Show, type JSX } from 'solid-js';
import { ApiError } from '../lib/api.ts';
import { BASE } from '../lib/base.ts';
import { copyText } from '../lib/clipboard.ts';
import { firstCommands, serverAddress } from '../lib/commands.ts';
import { loggedIn } from '../lib/session.ts';
import { Icon, type IconName } from './Icon.tsx';

export function Notice(props: { icon: IconName; title: string; error?: boolean; children?: JSX.Element; actions?: JSX.Element }) {
  return (
    <div class="notice" classList={{ error: props.error ?? false }} role={props.error ? 'alert' : 'status'}>
      <Icon name={props.icon} />
      <h2>{props.title}</h2>
      {props.children}
      <Show when={props.actions}><div class="actions">{props.actions}</div></Show>
    </div>
  );
}

/** What a failed question means for the person who asked it. */
export function advice(error: Error): string {
  if (!(error instanceof ApiError)) return 'The answer could not be read. Is something else than a profile store behind this address?';
  switch (error.code) {
    case 'network':
      return 'Check that the server runs and that this machine reaches it, then try again.';
    case 'invalid_argument':
      return 'The question was refused. Check the filters and the range.';
    case 'unauthenticated':
    case 'permission_denied':
      return 'You are not allowed to ask this. Sign in, or ask for access to this tenant.';
    case 'resource_exhausted':
    case 'deadline_exceeded':
      return 'The question was too large. A shorter range or more filters make it smaller.';
    case 'unimplemented':
      return 'This server does not answer this kind of question.';
    default:
      return 'Try again; if it stays, the log of the server says more.';
  }
}

export function Failure(props: { what: string; error: Error; retry: () => void }) {
  return (
    <Notice icon="alert" error title={props.what} actions={<button type="button" class="button primary" onClick={() => props.retry()}><Icon name="refresh" />Try again</button>}>
      <p>{props.error.message}</p>
      <p>{advice(props.error)}</p>
    </Notice>
  );
}

export function Command(props: { text: string }) {
  const [copied, setCopied] = createSignal(false);
  return (
    <div class="command">
      <code tabindex="0">{props.text}</code>
      <button
        type="button"
        class="button plain"
        aria-label="Copy command"
        onClick={async () => {
          setCopied(await copyText(props.text));
          setTimeout(() => setCopied(false), 1500);
        }}
      >
        <Icon name={copied() ? 'check' : 'copy'} />
      </button>
    </div>
  );
}

export interface NothingStoredProps {
  /** Where it is told how programs send, and the way there. */
  send: string;
  onFollow: (event: MouseEvent & { currentTarget: HTMLAnchorElement }) => void;
  onRefresh: () => void;
}

/** Nothing was ever stored: the commands that would store something. */
export function NothingStored(props: NothingStoredProps) {
  // Whoever runs the command should see the page come alive by itself.
  const timer = setInterval(() => document.visibilityState === 'visible' && props.onRefresh(), 3000);
  onCleanup(() => clearInterval(timer));
  return (
    <Notice icon="empty" title="Nothing is stored yet" actions={<a class="button primary" href={props.send} onClick={(event) => props.onFollow(event)}><Icon name="send" />From Go, Java, Python, ...: send profiles here</a>}>
      <p>As soon as a profile arrives it shows up here. Any of these makes one arrive:</p>
      <For each={firstCommands(serverAddress(location.origin, BASE), loggedIn())}>
        {({ title, text }) => (
          <>
            <p>{title}</p>
            <Command text={text} />
          </>
        )}
      </For>
    </Notice>
  );
}
