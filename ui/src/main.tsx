// Starts the page.

import { render } from 'solid-js/web';
import './style/page.css';
import { App } from './app.tsx';

render(() => <App />, document.getElementById('app')!);
