// Commands that send a first profile to an empty server, with its address.

/** Returns three commands: two send a first profile to this server, and one runs the demo instead of it. If `asks` is true, the first two authenticate with a token. */
export function firstCommands(server: string, asks: boolean): readonly { title: string; text: string }[] {
  const curl = `curl${asks ? ' -H "Authorization: Bearer $ALLUVIUM_TOKEN"' : ''} --data-binary`;
  return [
    { title: 'Send an existing profile', text: `${curl} @cpu.pprof '${server}/ingest?name=my-service&format=pprof'` },
    { title: 'Or send a made-up profile', text: `printf 'main;work 30\\nmain;idle 70\\n' | ${curl} @- '${server}/ingest?name=made-up'` },
    { title: 'Or run the demo instead of this server. The demo profiles itself and, if it has the rights, its host', text: 'alluvium demo' },
  ];
}

/** Returns the address of this server for other programs: the address of the page. */
export const serverAddress = (origin: string, base: string): string => (origin + base).replace(/\/+$/, '');
