// Text in the storage of this browser. The page also works if storage is forbidden.

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
    // Without storage, the value is lost with the page.
  }
}

export function recallNumber(key: string, fallback: number): number {
  const value = Number(recall(key) ?? Number.NaN);
  return Number.isFinite(value) ? value : fallback;
}
