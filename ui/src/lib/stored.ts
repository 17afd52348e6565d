// Text in this browser's storage. Storage may be forbidden; the page works without.

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(`alluvium.${key}`);
  } catch {
    return null;
  }
}

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(`alluvium.${key}`, value);
  } catch {
    // The choice is forgotten with the page.
  }
}

export function recallNumber(key: string, fallback: number): number {
  const value = Number(recall(key) ?? Number.NaN);
  return Number.isFinite(value) ? value : fallback;
}
