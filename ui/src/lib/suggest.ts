// "Did you mean": finds the names most similar to a name that does not exist. Also filters a list by typed text.

/** Returns the edit distance (insert, delete, replace) of two words. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a.charCodeAt(i - 1) === b.charCodeAt(j - 1) ? 0 : 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** Returns at most three names that are similar to a wrong name, the most similar first. */
export function didYouMean(wrong: string, names: readonly string[]): string[] {
  const word = wrong.toLowerCase();
  return names
    .map((name) => {
      const other = name.toLowerCase();
      const part = other.includes(word) || word.includes(other) ? 0 : distance(word.slice(0, 60), other.slice(0, 60));
      return { name, score: part };
    })
    .filter(({ name, score }) => score <= Math.max(2, Math.floor(Math.max(name.length, word.length) / 2)))
    .sort((a, b) => a.score - b.score || a.name.localeCompare(b.name))
    .slice(0, 3)
    .map(({ name }) => name);
}

/** Returns the items that contain every typed word; those that begin with the first word come first. */
export function filterItems<T>(items: readonly T[], typed: string, textOf: (item: T) => string): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...items];
  const hits = items.filter((item) => {
    const text = textOf(item).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const begins = (item: T): number => (textOf(item).toLowerCase().startsWith(words[0]!) ? 0 : 1);
  return hits.map((item, index) => ({ item, index })).sort((a, b) => begins(a.item) - begins(b.item) || a.index - b.index).map(({ item }) => item);
}
