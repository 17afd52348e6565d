// The login form: a user and a password, or only a token. After a login, the page reloads with the same address.

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
    <Notice icon="key" title="Log in">
      <p>This server requires authentication. To log in with a token, leave the user empty.</p>
      <form class="login" onSubmit={(event) => void submit(event)}>
        <label>User<input ref={user} name="user" autocomplete="username" autofocus /></label>
        <label>Password or token<input ref={password} name="password" type="password" autocomplete="current-password" required /></label>
        <Show when={refusal()}><p class="refusal" role="alert">{refusal()}</p></Show>
        <button type="submit" class="button primary" disabled={busy()}>Log in</button>
      </form>
    </Notice>
  );
}
