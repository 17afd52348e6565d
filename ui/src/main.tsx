// Starts the page of the server.

import { render } from 'solid-js/web';
import './style/page.css';
import { App } from './app.tsx';
import { serverRoutes } from './routes.ts';

render(() => <App routes={serverRoutes()} tour={() => import('./components/Tour.tsx')} />, document.getElementById('app')!);
