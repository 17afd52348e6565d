import { describe, expect, it } from 'vitest';
import { parametersOf } from '../../src/lib/adhoc.ts';
import { firstCommands, serverAddress } from '../../src/lib/commands.ts';
import { explainUnit, type Unit } from '../../src/lib/format.ts';
import { waysTo } from '../../src/lib/send.ts';
import { nameOfId } from '../../src/models/adhoc.ts';

describe('a request for a file', () => {
  const question = { file: null, id: '', type: '', baseline: null };

  it('contains only the given parameters', () => {
    expect(parametersOf(question, null)).toBe('');
    expect(parametersOf({ ...question, type: 'cpu' }, 64)).toBe('maxNodes=64&type=cpu');
  });

  it('has whole milliseconds that contain the range, and the selector unchanged', () => {
    const baseline = { selector: '{service_name="a&b=c"}', range: { start: 10.7, end: 20.2 } };
    const params = new URLSearchParams(parametersOf({ ...question, baseline }, null));
    expect(Object.fromEntries(params)).toEqual({ baseline: '{service_name="a&b=c"}', from: '10', until: '21' });
  });

  it('shows the name at the end of an id', () => {
    expect(nameOfId('01HF0000000000000000000000-cpu.pb.gz')).toBe('cpu.pb.gz');
    expect(nameOfId('odd')).toBe('odd');
  });
});

describe('the instructions for sending', () => {
  it('have the address of the server, with its prefix and without a slash at its end', () => {
    expect(serverAddress('https://host:4040', '/')).toBe('https://host:4040');
    expect(serverAddress('https://host', '/a/b/')).toBe('https://host/a/b');
  });

  it('contain the address of the server for every way to send profiles', () => {
    const server = 'https://host/prefix';
    expect(waysTo(server, false).filter(({ steps }) => !steps.some(({ text }) => text.includes(server)))).toEqual([]);
    expect(new Set(waysTo(server, false).map(({ key }) => key)).size).toBe(waysTo(server, false).length);
  });

  it('have three commands for an empty server', () => {
    expect(firstCommands('http://x', false).length).toBe(3);
  });
});

it('every unit has an explanation', () => {
  const units: Unit[] = ['ns', 'bytes', 'count', 'cores', 'bytes/s', 'count/s', 's/s'];
  for (const unit of units) expect(explainUnit(unit)).not.toBe('');
});
