// Runs several requests with limited concurrency, and returns the responses in the order of the requests.

export async function inTurn<I, T>(inputs: readonly I[], atOnce: number, ask: (input: I) => Promise<T>): Promise<T[]> {
  const answers = new Array<T>(inputs.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let at = next; at < inputs.length; at = next) {
      next += 1;
      answers[at] = await ask(inputs[at]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, inputs.length) }, work));
  return answers;
}
