// Requests for files: the server parses a file, and stores it only on request.

import { ApiError, send, type FlameGraphMessage } from './api.ts';
import type { Range } from './time.ts';

/** A request for a file. */
export interface FileQuestion {
  /** The file; null for a file that the server keeps, which `id` names. */
  file: Blob | null;
  id: string;
  /** Profile type; empty for the default of the server. */
  type: string;
  /** The stored profiles to compare the file with. */
  baseline: { selector: string; range: Range } | null;
}

export interface FileAnswer {
  profileTypes: string[];
  profileType: string;
  /** The flame graph of the file, if the request has no baseline. */
  flamegraph?: FlameGraphMessage;
  /** The difference between the baseline and the file, if the request has a baseline. */
  difference?: FlameGraphMessage;
}

export interface KeptFile {
  id: string;
  name: string;
  /** Time of the upload, in milliseconds since 1970. */
  uploaded: number;
}

const SERVICE = 'adhocprofiles.v1.AdHocProfileService';
/** Number of nodes to request. A file is loaded once, with enough nodes to zoom. */
const NODES = 65_536;

/** Returns the parameters of a request. */
export function parametersOf({ id, type, baseline }: FileQuestion, nodes: number | null): string {
  const params = new URLSearchParams();
  if (nodes !== null) params.set('maxNodes', String(nodes));
  if (id !== '') params.set('id', id);
  if (type !== '') params.set('type', type);
  if (baseline) {
    params.set('baseline', baseline.selector);
    params.set('from', String(Math.floor(baseline.range.start)));
    params.set('until', String(Math.ceil(baseline.range.end)));
  }
  return params.toString();
}

export async function lookAt(question: FileQuestion, signal?: AbortSignal): Promise<FileAnswer> {
  const ask = async (nodes: number | null): Promise<FileAnswer> => {
    const init = { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: question.file };
    return (await send(`api/v1/adhoc?${parametersOf(question, nodes)}`, init, signal)).json() as Promise<FileAnswer>;
  };
  return ask(NODES).catch((error: unknown) => {
    // If the server limits the number of nodes, request its default.
    if (error instanceof ApiError && /nodes limit/.test(error.message)) return ask(null);
    throw error;
  });
}

async function call<T>(method: string, request: object, signal?: AbortSignal): Promise<T> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json', 'connect-protocol-version': '1' }, body: JSON.stringify(request) };
  return (await send(`${SERVICE}/${method}`, init, signal)).json() as Promise<T>;
}

/** Keeps a file on the server, and returns its id. */
export async function keepFile(file: File): Promise<string> {
  const answer = await call<{ id?: string }>('Upload', { name: file.name, profile: await base64(file), maxNodes: '1' });
  return answer.id ?? '';
}

/** Returns the files that the server keeps, the newest first. */
export async function keptFiles(signal?: AbortSignal): Promise<KeptFile[]> {
  const { profiles = [] } = await call<{ profiles?: { id?: string; name?: string; uploadedAt?: string | number }[] }>('List', {}, signal);
  return profiles.map(({ id = '', name = '', uploadedAt = 0 }) => ({ id, name, uploaded: Number(uploadedAt) }));
}

function base64(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(String(reader.result).replace(/^[^,]*,/, '')));
    reader.addEventListener('error', () => reject(new Error(`cannot read the file: ${reader.error?.message ?? ''}`)));
    reader.readAsDataURL(file);
  });
}
