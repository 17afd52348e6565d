// Starts the page of the collector, which has only the Pipeline view.

import { render } from 'solid-js/web';
import './style/page.css';
import { App } from './app.tsx';
import { pipeline } from './routes.ts';

render(() => <App routes={[pipeline]} />, document.getElementById('app')!);
