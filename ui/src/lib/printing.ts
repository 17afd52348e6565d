// Whether the page is being printed. The code that draws canvases uses this state, because style sheets do not apply to canvases.

import { createSignal } from 'solid-js';

const [printing, setPrinting] = createSignal(false);
export { printing };

// When the user prints, the browser sends these events. Tools that only show the print layout change the medium instead.
const medium = matchMedia('print');
addEventListener('beforeprint', () => setPrinting(true));
addEventListener('afterprint', () => setPrinting(false));
medium.addEventListener('change', () => setPrinting(medium.matches));
