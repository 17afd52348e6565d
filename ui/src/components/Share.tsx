// A link to exactly the shown state. A relative range can be pinned to its current times.

import { createSignal, Show } from 'solid-js';
import { copyText } from '../lib/clipboard.ts';
import { formatWhole } from '../lib/format.ts';
import { isLongLink, LONGEST_LINK } from '../lib/links.ts';
import { say } from '../lib/toast.ts';
import { Icon } from './Icon.tsx';
import { Popover } from './Popover.tsx';

export interface ShareProps {
  /** Path of the shown state. */
  href: string;
  /** The same path with an absolute range; null if the range does not move with the present. */
  pinned: string | null;
}

export function Share(props: ShareProps) {
  const [pinned, setPinned] = createSignal(true);
  const link = (): string => location.origin + ((pinned() ? props.pinned : null) ?? props.href);
  return (
    <Popover label="Share" class="button" align="right" trigger={<><Icon name="share" /><span class="wide-only">Share</span></>}>
      {(close) => (
        <div class="body share-body">
          <input class="field" readonly aria-label="Link to this view" id="share-link" value={link()} onFocus={(event) => event.currentTarget.select()} />
          <Show when={props.pinned !== null}>
            <label class="checkbox">
              <input type="checkbox" checked={pinned()} onChange={(event) => setPinned(event.currentTarget.checked)} />
              Pin to the time shown now
            </label>
          </Show>
          <Show when={isLongLink(link())}>
            <p class="long-link">The link has {formatWhole(link().length)} characters. Many servers and chats cut links at {formatWhole(LONGEST_LINK)}. Use shorter filters, searches or statements.</p>
          </Show>
          <div>
            <button
              type="button"
              class="button primary"
              onClick={async () => {
                const done = await copyText(link());
                close();
                say(done ? 'Link copied' : 'The browser did not allow copying');
              }}
            >
              <Icon name="copy" />Copy link
            </button>
          </div>
        </div>
      )}
    </Popover>
  );
}
