// Parses metrics in the text format of Prometheus: names, labels, values.

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n' };

export function readMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, inner = '', value = ''] = LINE.exec(line) ?? [];
    if (name === undefined) return [];
    const labels = Object.fromEntries([...inner.matchAll(LABEL)].map(([, label, quoted]) => [label!, quoted!.replace(/\\(.)/g, (_, char: string) => ESCAPES[char] ?? char)]));
    return [{ name, labels, value: value === '+Inf' ? Number.POSITIVE_INFINITY : value === '-Inf' ? Number.NEGATIVE_INFINITY : Number(value) }];
  });
}

/** Returns the sum of the samples with a name and these labels; undefined if there are none. */
export function metric(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  const found = samples.filter((sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

/** Returns the values of a label among the samples with a name. */
export const valuesOf = (samples: readonly Sample[], name: string, label: string): string[] => [...new Set(samples.filter((sample) => sample.name === name).map(({ labels }) => labels[label] ?? ''))].sort();
