// Starts the server's page.

import { lazy } from 'solid-js';
import { render } from 'solid-js/web';
import './style/page.css';
import { App, type View } from './app.tsx';
import { HAS_COLLECTOR } from './lib/base.ts';
import { Profile } from './views/Profile.tsx';
import { Services } from './views/Services.tsx';

const VIEWS: View[] = [
  { route: 'services', label: 'Services', icon: 'services', component: Services },
  { route: 'profile', label: 'Profile', icon: 'profile', component: Profile },
];
if (HAS_COLLECTOR) VIEWS.push({ route: 'pipeline', label: 'Pipeline', icon: 'pipeline', component: lazy(() => import('./views/Pipeline.tsx')) });

render(() => <App views={VIEWS} />, document.getElementById('app')!);
