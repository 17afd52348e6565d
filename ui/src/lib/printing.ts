// Whether the page is being printed. Canvases need to know, because style sheets do not apply to them.

import { createSignal } from 'solid-js';

const [printing, setPrinting] = createSignal(false);
export { printing };

// A print sends the events. Tools that only show the print layout change the medium.
const medium = matchMedia('print');
addEventListener('beforeprint', () => setPrinting(true));
addEventListener('afterprint', () => setPrinting(false));
medium.addEventListener('change', () => setPrinting(medium.matches));
