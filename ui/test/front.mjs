// The page as built here, in front of a server that was built elsewhere: it serves ui/dist, and forwards all other requests to the server.

import { createServer, request as ask } from 'node:http';
import { servePage } from './mock.mjs';

/** Starts the front on a free port, and returns `url` and `close`. */
export async function startFront(backend) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://front');
    const onward = () => {
      const to = ask(new URL(request.url, backend), { method: request.method, headers: { ...request.headers, host: new URL(backend).host } }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      to.on('error', () => response.destroy());
      response.on('close', () => to.destroy());
      request.pipe(to);
    };
    if (request.method !== 'GET') return onward();
    void servePage(pathname, response, onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
