// The login: a user and a password, or a token alone. After it the page begins anew, with the same address.

import { createSignal, Show } from 'solid-js';
import { login } from '../lib/session.ts';
import { Notice } from './Notice.tsx';

export function Login(props: { onDone: () => void }) {
  const [refusal, setRefusal] = createSignal<string>();
  const [busy, setBusy] = createSignal(false);
  let user!: HTMLInputElement;
  let password!: HTMLInputElement;

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const refused = await login(user.value.trim(), password.value);
    setBusy(false);
    setRefusal(refused);
    if (refused === undefined) props.onDone();
    else password.select();
  };

  return (
    <Notice icon="key" title="Who are you?">
      <p>This server wants to know who asks. Without a user the password is a token.</p>
      <form class="login" onSubmit={(event) => void submit(event)}>
        <label>User<input ref={user} name="user" autocomplete="username" autofocus /></label>
        <label>Password or token<input ref={password} name="password" type="password" autocomplete="current-password" required /></label>
        <Show when={refusal()}><p class="refusal" role="alert">{refusal()}</p></Show>
        <button type="submit" class="button primary" disabled={busy()}>Log in</button>
      </form>
    </Notice>
  );
}
