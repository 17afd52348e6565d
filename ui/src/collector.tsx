// Starts the collector's page: the pipeline is all that it has.

import { render } from 'solid-js/web';
import './style/page.css';
import { App, type View } from './app.tsx';
import Pipeline from './views/Pipeline.tsx';

const VIEWS: View[] = [{ route: 'pipeline', label: 'Pipeline', icon: 'pipeline', component: Pipeline }];

render(() => <App views={VIEWS} />, document.getElementById('app')!);
