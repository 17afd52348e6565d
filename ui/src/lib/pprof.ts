// Encodes a SelectMergeProfileRequest as protobuf by hand. The server responds to a protobuf request in protobuf, and this response is
// already a pprof profile. Also compresses data with the gzip of the browser, because a pprof file is gzipped.

function varint(out: number[], value: number): void {
  // Times exceed 2^32, so bit operators do not work; division does.
  let rest = value;
  while (rest >= 128) {
    out.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  out.push(rest);
}

function text(out: number[], field: number, value: string): void {
  const bytes = new TextEncoder().encode(value);
  varint(out, field * 8 + 2);
  varint(out, bytes.length);
  for (const byte of bytes) out.push(byte);
}

/** querier.v1.SelectMergeProfileRequest: profile_typeID = 1, label_selector = 2, start = 3, end = 4. */
export function mergeProfileRequest(type: string, selector: string, start: number, end: number): Uint8Array {
  const out: number[] = [];
  text(out, 1, type);
  text(out, 2, selector);
  varint(out, 3 * 8);
  varint(out, start);
  varint(out, 4 * 8);
  varint(out, end);
  return Uint8Array.from(out);
}

export async function gzip(blob: Blob): Promise<Blob> {
  const zipped = blob.stream().pipeThrough(new CompressionStream('gzip'));
  return new Response(zipped).blob();
}

/** Saves a file as a download of the browser. */
export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement('a');
  const url = URL.createObjectURL(blob);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
