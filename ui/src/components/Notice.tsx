// Empty and error states: the problem, and what the user can do about it.

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

/** Returns advice for the user about a failed request. */
export function advice(error: Error): string {
  if (!(error instanceof ApiError)) return 'The response cannot be parsed. Check that a profile server is behind this address.';
  switch (error.code) {
    case 'network':
      return 'Check that the server runs and that this machine can reach it, then try again.';
    case 'invalid_argument':
      return 'The server refused the request. Check the filters and the range.';
    case 'unauthenticated':
    case 'permission_denied':
      return 'You have no access. Log in, or ask an administrator for access to this tenant.';
    case 'resource_exhausted':
    case 'deadline_exceeded':
      return 'The query is too large. Use a shorter range or more filters.';
    case 'unimplemented':
      return 'This server does not support this kind of request.';
    default:
      return 'Try again. If the error persists, look into the log of the server.';
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
  /** Address of the view that explains how to send profiles. */
  send: string;
  onFollow: (event: MouseEvent & { currentTarget: HTMLAnchorElement }) => void;
  onRefresh: () => void;
}

/** The notice for an empty server, with commands that send a first profile. */
export function NothingStored(props: NothingStoredProps) {
  // Refresh, so that the first profile appears without a reload of the page.
  const timer = setInterval(() => document.visibilityState === 'visible' && props.onRefresh(), 3000);
  onCleanup(() => clearInterval(timer));
  return (
    <Notice icon="empty" title="No profiles are stored yet" actions={<a class="button primary" href={props.send} onClick={(event) => props.onFollow(event)}><Icon name="send" />Send profiles from Go, Java, Python, ...</a>}>
      <p>The first profile appears here as soon as it arrives. Each of these commands produces one:</p>
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
