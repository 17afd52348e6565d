// The file that the user has dropped on the page or chosen. The file is not stored, so it is lost when the page is closed.

import { createSignal, onCleanup, onMount } from 'solid-js';

const [file, setFile] = createSignal<File | null>(null);
export { file };

/** Sets the current file; null for none. */
export const takeFile = (taken: File | null): void => void setFile(taken);

/** While the component is mounted, accepts each file that is dropped anywhere on the page, and calls `taken` after it. If several files are dropped together, the first is accepted. */
export function createDrop(taken: () => void): void {
  const root = document.documentElement;
  const holds = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false;
  const over = (event: DragEvent): void => {
    if (!holds(event)) return;
    event.preventDefault();
    root.dataset.drop = 'yes';
  };
  const leave = (event: DragEvent): void => {
    // Without a related element, the pointer has left the window.
    if (event.relatedTarget === null) delete root.dataset.drop;
  };
  const drop = (event: DragEvent): void => {
    delete root.dataset.drop;
    if (!holds(event)) return;
    event.preventDefault();
    const dropped = event.dataTransfer?.files[0];
    if (!dropped) return;
    takeFile(dropped);
    taken();
  };
  onMount(() => {
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', leave);
    document.addEventListener('drop', drop);
  });
  onCleanup(() => {
    document.removeEventListener('dragover', over);
    document.removeEventListener('dragleave', leave);
    document.removeEventListener('drop', drop);
  });
}
