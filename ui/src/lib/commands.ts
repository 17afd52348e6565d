// What an empty server can be told to do, with its address in it.

/** Three commands, each of which makes an empty server show something; with a token in the environment where it asks who calls. */
export function firstCommands(server: string, asks: boolean): readonly { title: string; text: string }[] {
  const curl = `curl${asks ? ' -H "Authorization: Bearer $ALLUVIUM_TOKEN"' : ''} --data-binary`;
  return [
    { title: 'Send a profile that you have', text: `${curl} @cpu.pprof '${server}/ingest?name=my-service&format=pprof'` },
    { title: 'Or make one up', text: `printf 'main;work 30\\nmain;idle 70\\n' | ${curl} @- '${server}/ingest?name=made-up'` },
    { title: 'Or start a demo in place of this server: it profiles itself and, where it may, this host', text: 'alluvium demo' },
  ];
}

/** This server as others reach it: where the page came from. */
export const serverAddress = (origin: string, base: string): string => (origin + base).replace(/\/+$/, '');
