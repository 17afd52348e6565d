// Whether the page is being printed: what is drawn, and not styled, has to know.

import { createSignal } from 'solid-js';

const [printing, setPrinting] = createSignal(false);
export { printing };

// Printing begins with the event; what shows a page as if it were printed changes the medium only.
const medium = matchMedia('print');
addEventListener('beforeprint', () => setPrinting(true));
addEventListener('afterprint', () => setPrinting(false));
medium.addEventListener('change', () => setPrinting(medium.matches));
