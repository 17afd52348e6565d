// Starts the collector's page: the pipeline is all that it has.

import { render } from 'solid-js/web';
import './style/page.css';
import { App } from './app.tsx';
import { pipeline } from './routes.ts';

render(() => <App routes={[pipeline]} />, document.getElementById('app')!);
