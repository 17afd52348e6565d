import { describe, expect, it } from 'vitest';
import { firstCommands } from '../../src/lib/commands.ts';
import { TOKEN, TOKEN_FILE, TOKEN_STEPS, waysTo } from '../../src/lib/send.ts';

const SERVER = 'https://profiles.example/profile';
const textOf = (steps: readonly { text: string }[]): string => steps.map(({ text }) => text).join('\n');

describe('the instructions for sending', () => {
  it.each(waysTo(SERVER, true).map((way) => [way.key, textOf(way.steps)]))('by %s refer to a token if the server requires authentication', (_, text) => {
    expect(text).toContain(SERVER);
    expect(text.includes(TOKEN) || text.includes(TOKEN_FILE)).toBe(true);
    expect(text).toMatch(/Authorization|_auth|bearer_token_file/);
  });

  it('refer to no token if the server requires no authentication, and differ in nothing else', () => {
    for (const [index, way] of waysTo(SERVER, false).entries()) {
      const asked = waysTo(SERVER, true)[index]!;
      expect(textOf(way.steps)).not.toMatch(/token|auth/i);
      expect([asked.key, asked.label, asked.what, asked.steps.length]).toEqual([way.key, way.label, way.what, way.steps.length]);
    }
  });

  it('are well formed with a token', () => {
    const text = (key: string): string => textOf(waysTo(SERVER, true).find((way) => way.key === key)!.steps);
    expect(text('dotnet')).toContain('export PYROSCOPE_HTTP_HEADERS="{\\"Authorization\\": \\"Bearer $ALLUVIUM_TOKEN\\"}"');
    expect(text('otel')).toContain(`    endpoint: ${SERVER}\n    headers:\n      Authorization: "Bearer \${env:ALLUVIUM_TOKEN}"\nservice:`);
    expect(text('scrape')).toContain(`    url               = "${SERVER}"\n    bearer_token_file = "${TOKEN_FILE}"\n  }`);
    expect(text('python')).toMatch(/^pip install pyroscope-io\nimport os\nimport pyroscope\n/);
    expect(text('files').match(/-H "Authorization: Bearer \$ALLUVIUM_TOKEN"/g)).toHaveLength(3);
  });

  it('never contain the token itself, but explain how to create one', () => {
    const all = [textOf(TOKEN_STEPS), ...waysTo(SERVER, true).map(({ steps }) => textOf(steps)), textOf(firstCommands(SERVER, true))].join('\n');
    expect(all).toContain('alluvium token new my-service --role write');
    expect(all).not.toMatch(/allu_|Bearer [A-Za-z0-9]/);
  });
});

describe('the first commands', () => {
  it('authenticate if the server requires it', () => {
    expect(textOf(firstCommands(SERVER, false))).not.toContain('Authorization');
    expect(textOf(firstCommands(SERVER, true)).match(/-H "Authorization: Bearer \$ALLUVIUM_TOKEN"/g)).toHaveLength(2);
  });
});
