// Whether the page is being printed. The code that draws canvases uses this state, because style sheets do not apply to canvases.

import { createSignal } from 'solid-js';

const [printing, setPrinting] = createSignal(false);
export { printing };

// A print sends the events. Tools that only show the print layout change the medium.
const medium = matchMedia('print');
addEventListener('beforeprint', () => setPrinting(true));
addEventListener('afterprint', () => setPrinting(false));
medium.addEventListener('change', () => setPrinting(medium.matches));
