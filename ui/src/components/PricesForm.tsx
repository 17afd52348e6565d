// The form for the prices of a core-hour and of a GiB-hour. The server stores them for all users of the tenant.

import { createSignal, Show } from 'solid-js';
import { readPrices, type Prices } from '../lib/cost.ts';
import { Popover } from './Popover.tsx';

export interface PricesFormProps {
  prices: Prices | null;
  onKeep: (prices: Prices) => Promise<void>;
}

export function PricesForm(props: PricesFormProps) {
  return (
    <Popover label="Prices" named trigger={props.prices ? 'Prices' : 'Set prices'}>
      {(close) => <Form {...props} close={close} />}
    </Popover>
  );
}

function Form(props: PricesFormProps & { close: () => void }) {
  const [refusal, setRefusal] = createSignal('');
  const [busy, setBusy] = createSignal(false);
  let core!: HTMLInputElement;
  let gib!: HTMLInputElement;
  let currency!: HTMLInputElement;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const prices = readPrices(JSON.stringify({ core: Number(core.value || 0), gib: Number(gib.value || 0), currency: currency.value.trim() }));
    if (prices === null) {
      setRefusal('At least one of the prices must be above zero');
      return;
    }
    setBusy(true);
    await props.onKeep(prices).then(() => props.close(), (error: unknown) => setRefusal(`Cannot store the prices: ${error instanceof Error ? error.message : String(error)}`));
    setBusy(false);
  };
  return (
    <form class="body prices" onSubmit={(event) => void submit(event)}>
      <label>Price of a core-hour<input class="field" ref={core} type="number" min="0" step="any" inputmode="decimal" value={props.prices?.core ?? ''} placeholder="0.03" /></label>
      <label>Price of a GiB-hour of memory<input class="field" ref={gib} type="number" min="0" step="any" inputmode="decimal" value={props.prices?.gib ?? ''} placeholder="0.004" /></label>
      <label>Currency<input class="field" ref={currency} maxlength="8" value={props.prices?.currency ?? ''} placeholder="€" /></label>
      <p class="muted">The server stores the prices for all users of this tenant.</p>
      <Show when={refusal()}><p class="bad" role="alert">{refusal()}</p></Show>
      <div><button type="submit" class="button primary" disabled={busy()}>Save</button></div>
    </form>
  );
}
