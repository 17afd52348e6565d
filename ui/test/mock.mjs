// A stand-in for the server, for development and tests of the page. It answers Pyroscope's querier.v1 in JSON with seeded
// data, and serves ui/dist/server at `/` and below `/profile/`, with the strict Content-Security-Policy of the real server.
// Modes: `normal`, `empty` (nothing stored), `error` (every request fails), `one` (a single service), `slow`, `young` (the first
// profile is forty seconds old), `hostile` (hostile names of services, functions and labels), `many` (5,000 services). A test can also delay or fail the requests of one method, or fold more frames.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const DIST = process.env.DIST ? pathToFileURL(`${process.env.DIST}/`) : new URL('../dist/server/', import.meta.url);
const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const INUSE = 'memory:inuse_space:bytes:space:bytes';
const ALLOC = 'memory:alloc_space:bytes:space:bytes';
/** A type that all services send with only zeros, like a Go program that does not record it. */
const IDLE = 'block:contentions:count:contentions:count';
const TYPES = [CPU, 'process_cpu:samples:count:cpu:nanoseconds', INUSE, 'memory:inuse_objects:count:space:bytes', ALLOC, 'memory:alloc_objects:count:space:bytes',
  'goroutine:goroutine:count:goroutine:count', 'mutex:delay:nanoseconds:contentions:count', 'mutex:contentions:count:contentions:count', 'block:delay:nanoseconds:contentions:count', IDLE];

/** A small, repeatable random number generator: mulberry32. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function seedOf(text) {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return hash >>> 0;
}

const SERVICES = [
  { name: 'checkout', weight: 3.4, memory: 1.9, pods: 4, domain: 'checkout', verbs: ['PlaceOrder', 'Quote', 'ApplyVoucher', 'ReserveStock', 'Confirm'] },
  { name: 'catalog', weight: 2.1, memory: 3.6, pods: 3, domain: 'catalog', verbs: ['Search', 'Facets', 'Rank', 'LoadPage', 'Thumbnails'] },
  { name: 'gateway', weight: 5.2, memory: 0.8, pods: 6, domain: 'gateway', verbs: ['Route', 'Authenticate', 'RateLimit', 'Proxy', 'Trace'] },
  { name: 'payments', weight: 0.9, memory: 0.6, pods: 2, domain: 'payments', verbs: ['Authorize', 'Capture', 'Refund', 'Settle', 'FraudScore'] },
  { name: 'recommendations', weight: 4.1, memory: 5.3, pods: 3, domain: 'recommend', verbs: ['Neighbours', 'Score', 'Diversify', 'Explain', 'Warm'] },
  { name: 'inventory', weight: 0.7, memory: 0.5, pods: 2, domain: 'inventory', verbs: ['Count', 'Hold', 'Release', 'Sync', 'Audit'] },
  { name: 'notifications', weight: 0.35, memory: 0.3, pods: 2, domain: 'notify', verbs: ['Render', 'Enqueue', 'SendMail', 'SendPush', 'Dedupe'] },
  { name: 'search-indexer', weight: 1.6, memory: 2.7, pods: 2, domain: 'indexer', verbs: ['Tokenize', 'Merge', 'Commit', 'Snapshot', 'Compact'] },
  { name: 'sessions', weight: 0.5, memory: 1.2, pods: 3, domain: 'sessions', verbs: ['Open', 'Touch', 'Expire', 'Restore', 'Sweep'] },
];
/** Names that break code which does not treat them as data. Senders may choose them. */
export const HOSTILE = ['<img src=x onerror=alert(1)>', `long${'x'.repeat(9_996)}`, '\u202Eright to left', 'quo"te\'s, {braces} \\ and `ticks`', 'bell\u0007 escape\u001B[31m \u200B\uFEFF\u0085 end'];
/** Names that a line of text cannot contain, but a message can. */
const WORSE = [...HOSTILE, 'nul\u0000 line\nfeed \u2028 tab\t', '   ', '__proto__', 'constructor'];
const HOSTILES = WORSE.map((name) => ({ name, weight: 1, memory: 1, pods: 2, domain: 'hostile', verbs: WORSE }));
const MANY = Array.from({ length: 5000 }, (_, index) => ({ name: `service-${String(index).padStart(4, '0')}`, weight: 5 / (index + 1), memory: 3 / (index + 1), pods: 1, domain: 'many', verbs: ['Do'] }));
const NAMESPACES = ['prod', 'staging'];
/** Version of the first pod of each service. All other pods have the older version 1.42.1. */
const RELEASE = '1.43.0';
const REGIONS = ['eu-west-1', 'us-east-1'];

const LIBRARIES = [
  ['encoding/json', ['Marshal', '(*encodeState).marshal', '(*encodeState).reflectValue', 'structEncoder.encode', 'arrayEncoder.encode', 'stringEncoder', 'appendString'], 'encode.go'],
  ['database/sql', ['(*DB).QueryContext', '(*DB).query', '(*DB).queryDC', 'ctxDriverPrepare', 'withLock', '(*Rows).Next', 'convertAssign'], 'sql.go'],
  ['github.com/lib/pq', ['(*conn).Prepare', '(*conn).simpleQuery', '(*conn).recv1Buf', '(*rows).Next', 'decode', 'textDecode', 'parseTs'], 'conn.go'],
  ['google.golang.org/grpc', ['(*ClientConn).Invoke', 'invoke', '(*clientStream).SendMsg', '(*csAttempt).sendMsg', 'encode', 'recvAndDecompress'], 'stream.go'],
  ['google.golang.org/grpc/internal/transport', ['(*http2Client).Write', '(*controlBuffer).put', '(*loopyWriter).run', '(*loopyWriter).processData', '(*http2Server).HandleStreams'], 'controlbuf.go'],
  ['google.golang.org/protobuf/proto', ['MarshalOptions.marshal', 'UnmarshalOptions.unmarshal', 'Size', 'MarshalOptions.size'], 'encode.go'],
  ['google.golang.org/protobuf/internal/impl', ['(*MessageInfo).marshalAppendPointer', '(*MessageInfo).unmarshalPointer', 'appendMessageSliceInfo', 'consumeStringValidateUTF8', 'appendStringPtr'], 'codec_gen.go'],
  ['github.com/redis/go-redis/v9', ['(*Client).Process', '(*baseClient)._process', '(*Conn).WithReader', 'writeCmd', '(*StringCmd).readReply'], 'redis.go'],
  ['compress/gzip', ['(*Writer).Write', '(*Writer).Close', '(*Reader).Read'], 'gzip.go'],
  ['compress/flate', ['(*compressor).deflate', '(*compressor).findMatch', '(*compressor).writeBlock', '(*huffmanBitWriter).writeBlock', '(*decompressor).huffmanBlock'], 'deflate.go'],
  ['crypto/tls', ['(*Conn).Write', '(*Conn).writeRecordLocked', '(*halfConn).encrypt', '(*xorNonceAEAD).Seal', '(*Conn).readRecordOrCCS'], 'conn.go'],
  ['crypto/internal/fips140/aes/gcm', ['(*GCM).Seal', 'gcmAesEnc', 'gcmAesDec'], 'gcm_asm.go'],
  ['regexp', ['(*Regexp).doExecute', '(*Regexp).backtrack', '(*Regexp).tryBacktrack', '(*machine).add', '(*Regexp).ReplaceAllString'], 'exec.go'],
  ['strings', ['(*Builder).WriteString', 'Split', 'genSplit', 'IndexByte', 'Map', 'ToLower'], 'strings.go'],
  ['sort', ['Slice', 'pdqsort_func', 'insertionSort_func', 'partition_func'], 'zsortfunc.go'],
  ['go.opentelemetry.io/otel/sdk/trace', ['(*tracer).Start', '(*recordingSpan).End', '(*batchSpanProcessor).enqueue', 'newRecordingSpan'], 'span.go'],
  ['github.com/prometheus/client_golang/prometheus', ['(*CounterVec).WithLabelValues', '(*MetricVec).hashLabels', '(*histogram).Observe', '(*Registry).Gather'], 'vec.go'],
  ['go.uber.org/zap', ['(*Logger).Info', '(*Logger).check', '(*CheckedEntry).Write', '(*ioCore).Write'], 'logger.go'],
];

// A tree under construction: children by name.
const node = (name, file, line, mapping) => ({ name, file, line, mapping, self: 0, children: new Map() });

function child(parent, name, file, line, mapping) {
  let found = parent.children.get(name);
  if (!found) {
    found = node(name, file, line, mapping);
    parent.children.set(name, found);
  }
  return found;
}

function chain(parent, frames, mapping) {
  return frames.reduce((at, [name, file, line]) => child(at, name, file, line, mapping), parent);
}

const profiles = new Map();

/** Returns the profile of a service as a tree of unscaled values. The result is the same for every call. */
function profileOf(service, kind) {
  const key = `${service.name} ${kind}`;
  if (profiles.has(key)) return profiles.get(key);
  const rand = random(seedOf(key));
  const root = node('total', '', 0, '');
  const binary = `/app/${service.name}`;
  const pkg = `github.com/acme/shop/${service.domain}`;
  const server = chain(root, [
    ['net/http.(*conn).serve', 'net/http/server.go', 2102], ['net/http.serverHandler.ServeHTTP', 'net/http/server.go', 3301],
    ['go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp.(*middleware).serveHTTP', 'otelhttp/handler.go', 180],
    ['github.com/acme/shop/internal/middleware.Recover.func1', 'internal/middleware/recover.go', 31],
    ['github.com/acme/shop/internal/middleware.Auth.func1', 'internal/middleware/auth.go', 58],
    ['github.com/go-chi/chi/v5.(*Mux).routeHTTP', 'chi/v5/mux.go', 473],
  ], binary);
  const runtime = (parent, value) => {
    const leafs = kind === 'cpu'
      ? [['runtime.mallocgc', 'runtime/malloc.go', 1055], ['runtime.memmove', 'runtime/memmove_amd64.s', 120], ['runtime.mapaccess2_faststr', 'runtime/map_faststr.go', 160], ['runtime.growslice', 'runtime/slice.go', 177], ['runtime.newobject', 'runtime/malloc.go', 1380]]
      : [['bytes.growSlice', 'bytes/buffer.go', 249], ['runtime.makeslice', 'runtime/slice.go', 104], ['strings.(*Builder).grow', 'strings/builder.go', 70]];
    const [name, file, line] = leafs[Math.floor(rand() * leafs.length)];
    const at = child(parent, name, file, line, binary);
    if (kind === 'cpu' && name === 'runtime.mallocgc' && rand() < 0.5) child(at, rand() < 0.5 ? 'runtime.nextFreeFast' : 'runtime.heapSetTypeNoHeader', 'runtime/malloc.go', 820, binary).self += value;
    else at.self += value;
  };
  const grow = (parent, value, depth) => {
    if (value < 4e5 || depth > 18) {
      parent.self += value;
      return;
    }
    if (rand() < 0.16) {
      runtime(parent, value);
      return;
    }
    const own = value * rand() * 0.18;
    parent.self += own;
    let rest = value - own;
    const parts = 1 + Math.floor(rand() * 3.4);
    for (let part = 0; part < parts; part += 1) {
      const share = part === parts - 1 ? rest : rest * (0.25 + rand() * 0.55);
      rest -= share;
      if (share <= 0) continue;
      const [library, functions, file] = LIBRARIES[Math.floor(rand() ** 1.3 * LIBRARIES.length)];
      let at = parent;
      const first = Math.floor(rand() * functions.length);
      for (let step = 0; step < 1 + Math.floor(rand() * 4) && first + step < functions.length; step += 1) {
        at = child(at, `${library}.${functions[first + step]}`, `${library}/${file}`, 40 + ((first + step) * 67) % 900, binary);
      }
      grow(at, share, depth + 2);
    }
  };
  let budget = 1e9;
  service.verbs.forEach((verb, index) => {
    const share = index === service.verbs.length - 1 ? budget * 0.8 : budget * (0.22 + rand() * 0.3);
    budget -= share;
    const handler = chain(server, [
      [`${pkg}.(*Handler).${verb}`, `${service.domain}/handler.go`, 60 + index * 41],
      [`${pkg}.(*Service).${verb}`, `${service.domain}/service.go`, 88 + index * 57],
    ], binary);
    const inner = [`${pkg}.(*Service).load${verb}`, `${pkg}.(*Service).validate`, `${pkg}/store.(*Repository).Find${verb}`, `${pkg}/pricing.(*Engine).Evaluate`, `github.com/acme/shop/internal/cache.(*Tiered).Get`];
    let rest = share;
    inner.forEach((name, step) => {
      const part = step === inner.length - 1 ? rest * 0.9 : rest * (0.2 + rand() * 0.4);
      rest -= part;
      grow(child(handler, name, `${service.domain}/service.go`, 120 + step * 33, binary), part, 0);
    });
    handler.self += rest;
  });
  if (kind === 'cpu') {
    const gc = chain(root, [['runtime.gcBgMarkWorker', 'runtime/mgc.go', 1310], ['runtime.systemstack', 'runtime/asm_amd64.s', 514], ['runtime.gcBgMarkWorker.func2', 'runtime/mgc.go', 1475], ['runtime.gcDrain', 'runtime/mgcmark.go', 1203]], binary);
    child(gc, 'runtime.scanobject', 'runtime/mgcmark.go', 1450, binary).self += 9e7;
    child(child(gc, 'runtime.scanobject', 'runtime/mgcmark.go', 1450, binary), 'runtime.findObject', 'runtime/mbitmap.go', 1370, binary).self += 3.4e7;
    child(child(gc, 'runtime.scanobject', 'runtime/mgcmark.go', 1450, binary), 'runtime.greyobject', 'runtime/mgcmark.go', 1600, binary).self += 2.6e7;
    gc.self += 7e6;
    const schedule = chain(root, [['runtime.mcall', 'runtime/asm_amd64.s', 459], ['runtime.park_m', 'runtime/proc.go', 4102], ['runtime.schedule', 'runtime/proc.go', 3975], ['runtime.findRunnable', 'runtime/proc.go', 3391]], binary);
    schedule.self += 1.2e7;
    const poll = chain(schedule, [['runtime.netpoll', 'runtime/netpoll_epoll.go', 116], ['internal/runtime/syscall.EpollWait', 'internal/runtime/syscall/syscall_linux.go', 32]], binary);
    chain(poll, [['entry_SYSCALL_64_after_hwframe', '', 0], ['do_syscall_64', '', 0], ['__x64_sys_epoll_wait', '', 0], ['ep_poll', '', 0], ['schedule_hrtimeout_range', '', 0]], '[kernel.kallsyms]').self += 3.1e7;
    chain(schedule, [['runtime.stealWork', 'runtime/proc.go', 3706], ['runtime.runqgrab', 'runtime/proc.go', 6908]], binary).self += 1.7e7;
    const write = chain(server, [['net/http.(*response).finishRequest', 'net/http/server.go', 1712], ['bufio.(*Writer).Flush', 'bufio/bufio.go', 639], ['net.(*conn).Write', 'net/net.go', 195], ['internal/poll.(*FD).Write', 'internal/poll/fd_unix.go', 380], ['syscall.write', 'syscall/zsyscall_linux_amd64.go', 964]], binary);
    const kernel = chain(write, [['entry_SYSCALL_64_after_hwframe', '', 0], ['do_syscall_64', '', 0], ['ksys_write', '', 0], ['vfs_write', '', 0], ['sock_write_iter', '', 0], ['tcp_sendmsg', '', 0]], '[kernel.kallsyms]');
    kernel.self += 1.1e7;
    chain(kernel, [['tcp_push', '', 0], ['__tcp_transmit_skb', '', 0], ['ip_queue_xmit', '', 0]], '[kernel.kallsyms]').self += 2.9e7;
  } else {
    chain(root, [['runtime.main', 'runtime/proc.go', 283], ['main.main', 'main.go', 41], [`${pkg}.NewService`, `${service.domain}/service.go`, 31]], binary).self += 6e7;
  }
  // Names are data: this one must never become markup.
  child(server, `${pkg}.render<img src=x onerror=alert(1)>`, `${service.domain}/render.go`, 12, binary).self += 4e6;
  if (service.domain === 'hostile') for (const name of WORSE) child(child(server, name, name, 7, name), name, name, 9, name).self += 8e7;
  // This function has the name that the server uses for folded frames, but the page must show it as a function.
  child(server, 'other', `${service.domain}/other.go`, 3, binary).self += 9e7;
  profiles.set(key, root);
  return root;
}

function totalOf(tree) {
  tree.total = tree.self;
  for (const at of tree.children.values()) tree.total += totalOf(at);
  return tree.total;
}

/** Merges trees by name, each with its factor. */
function merge(trees) {
  const out = node('total', '', 0, '');
  const add = (into, from, factor) => {
    into.self += from.self * factor;
    for (const at of from.children.values()) add(child(into, at.name, at.file, at.line, at.mapping), at, factor);
  };
  for (const [tree, factor] of trees) add(out, tree, factor);
  return out;
}

/** Encodes a tree as Pyroscope does. Nodes smaller than the `maxNodes` largest nodes become `other`. */
export function encode(tree, maxNodes, details) {
  roundTree(tree);
  const totals = [];
  const collect = (at) => {
    totals.push(at.total);
    for (const next of at.children.values()) collect(next);
  };
  collect(tree);
  totals.sort((a, b) => b - a);
  const least = totals.length > maxNodes ? totals[maxNodes - 1] : 0;
  const names = ['total'];
  const files = [''];
  const mappings = [''];
  const index = new Map([['total', 0]]);
  const nameOf = (at) => {
    const key = at.folded ? '' : at.name;
    if (!index.has(key)) {
      index.set(key, names.length);
      names.push(at.name);
      files.push(at.file ?? '');
      mappings.push(at.mapping ?? '');
    }
    return index.get(key);
  };
  const levels = [];
  const lines = [];
  let maxSelf = 0;
  let row = [{ at: tree, x: 0 }];
  while (row.length > 0) {
    const values = [];
    const line = [];
    const next = [];
    let previous = 0;
    for (const { at, x } of row) {
      values.push(String(x - previous), String(at.total), String(at.self), String(nameOf(at)));
      line.push(String(at.folded ? -1 : (at.line ?? 0)));
      maxSelf = Math.max(maxSelf, at.self);
      previous = x + at.total;
      let inner = x + at.self;
      let other = 0;
      for (const below of [...at.children.values()].sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1))) {
        if (below.total <= 0) continue;
        if (below.total < least) {
          other += below.total;
          continue;
        }
        next.push({ at: below, x: inner });
        inner += below.total;
      }
      if (other > 0) next.push({ at: { name: 'other', folded: true, total: other, self: other, children: new Map() }, x: inner });
    }
    levels.push({ values });
    lines.push({ values: line });
    row = next;
  }
  const out = { names, levels, total: String(tree.total), maxSelf: String(maxSelf) };
  return details ? { ...out, files, mappings, lines } : out;
}

/** Returns about `count` nodes, wide and deep, for measuring the first draw. */
export function bigFlamegraph(count, seed = 7) {
  const rand = random(seed);
  const root = node('total', '', 0, '');
  let made = 1;
  let open = [root];
  while (made < count) {
    const next = [];
    for (const at of open) {
      const children = 1 + Math.floor(rand() * 4);
      for (let part = 0; part < children && made < count; part += 1) {
        const [library, functions, file] = LIBRARIES[Math.floor(rand() * LIBRARIES.length)];
        const name = `${library}.${functions[Math.floor(rand() * functions.length)]}${rand() < 0.7 ? `.func${Math.floor(rand() * 40)}` : ''}`;
        if (at.children.has(name)) continue;
        next.push(child(at, name, `${library}/${file}`, 10 + Math.floor(rand() * 800), '/app/big'));
        made += 1;
      }
      at.self = Math.floor(rand() ** 6 * 1e7);
    }
    open = next.length > 6000 ? next.filter(() => rand() < 0.4) : next;
  }
  const fill = (at) => {
    if (at.children.size === 0) at.self = 1e4 + Math.floor(rand() ** 4 * 1e7);
    for (const next of at.children.values()) fill(next);
  };
  fill(root);
  return encode(root, Infinity, true);
}

// --- series -----------------------------------------------------------------

function allSeries(mode) {
  const out = [];
  if (mode === 'hostile') {
    for (const service of HOSTILES) for (const [pod, value] of WORSE.entries()) out.push({ service, pod, labels: { service_name: service.name, label: value, [pod === 0 ? HOSTILE[0] : `label_${pod}`]: 'value' } });
    return out;
  }
  const known = { one: SERVICES.slice(0, 1), many: MANY }[mode] ?? SERVICES;
  for (const service of known) {
    for (let pod = 0; pod < service.pods; pod += 1) {
      const namespace = NAMESPACES[pod === service.pods - 1 ? 1 : 0];
      const id = (seedOf(`${service.name}${pod}`) % 60466176).toString(36).padStart(5, '0');
      out.push({ service, pod, labels: { service_name: service.name, namespace, region: REGIONS[pod % 2], pod: `${service.name}-7d9f8-${id}`, version: pod === 0 ? RELEASE : '1.42.1' } });
    }
  }
  return out;
}

/** Returns the value of a series at a time: nanoseconds per second for CPU, bytes for memory in use. */
function level({ service, pod }, type, ms) {
  if (type === IDLE) return 0;
  const seconds = ms / 1000;
  const noise = random(seedOf(`${service.name}${pod}${type}`) ^ Math.floor(seconds / 15))() - 0.5;
  const phase = (seedOf(service.name) % 628) / 100;
  const wave = 1 + 0.22 * Math.sin(seconds / 900 + phase) + 0.1 * Math.sin(seconds / 170 + phase * 3) + 0.14 * noise;
  // Every half hour, checkout has four bad minutes.
  const incident = service.name === 'checkout' && seconds % 1800 > 1100 && seconds % 1800 < 1340 ? 1.9 : 1;
  if (type === INUSE) return (service.memory * 2 ** 30) / service.pods * (0.7 + 0.35 * ((seconds / 1300 + phase) % 1) + 0.05 * noise);
  if (type.includes('goroutine')) return 120 * service.weight * wave;
  if (type.includes('inuse_objects')) return service.memory * 4e5 * wave;
  if (type.includes('alloc_space')) return service.weight * 4e7 * wave * incident;
  if (type.includes('nanoseconds:contentions')) return service.weight * 3e7 * wave * incident;
  if (type.startsWith('process_cpu:cpu')) return (service.weight / service.pods) * 1e9 * wave * incident;
  return service.weight * 90 * wave;
}

/** Returns the age of the oldest data in milliseconds. */
const ageOf = (mode) => (mode === 'young' ? 40_000 : 8 * 3.6e6);

/** Returns whether a series has data at a time. The service `inventory` has a gap of six minutes, which ends twenty minutes ago. */
function has({ service }, ms, now) {
  if (ms > now) return false;
  return !(service.name === 'inventory' && ms > now - 26 * 60e3 && ms < now - 20 * 60e3);
}

function parseSelector(text) {
  if (!/^\s*\{.*\}\s*$/s.test(text)) throw fault('invalid_argument', `parse error: unexpected input in selector ${JSON.stringify(text)}`);
  const matchers = [];
  for (const [, quotedName, plain, op, raw] of text.matchAll(/(?:"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w.]*))\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/gs)) {
    const name = plain ?? unquote(quotedName);
    const value = unquote(raw);
    let test;
    try {
      test = op.endsWith('~') ? new RegExp(`^(?:${value})$`) : null;
    } catch (error) {
      throw fault('invalid_argument', `parse error: ${error.message}`);
    }
    matchers.push((labels) => {
      const hit = test ? test.test(labels[name] ?? '') : (labels[name] ?? '') === value;
      return op.startsWith('!') ? !hit : hit;
    });
  }
  return (labels) => matchers.every((matcher) => matcher(labels));
}

/** The content of a quoted string: a backslash escapes a character, or begins a line break or a tab. */
const unquote = (text) => text.replace(/\\(.)/gs, (_, char) => ({ n: '\n', t: '\t', r: '\r' })[char] ?? char);

function fault(code, message, status = 400) {
  return Object.assign(new Error(message), { code, status });
}

function inRange(request, mode, now) {
  if (mode === 'empty') return [];
  const end = Math.min(Number(request.end ?? now), now);
  const start = Math.max(Number(request.start ?? 0), now - ageOf(mode));
  return start < end ? allSeries(mode) : [];
}

function selected(request, mode, now) {
  const selectors = request.matchers?.length ? request.matchers : [request.labelSelector ?? '{}'];
  const tests = selectors.map(parseSelector);
  return inRange(request, mode, now).filter(({ labels }) => tests.every((test) => test(labels)));
}

const pairs = (labels) => Object.entries(labels).map(([name, value]) => ({ name, value }));

/** Returns the series of the mode `many`. Their values follow directly from the weights of the services. */
function manySeries({ start, end }, step, gauge) {
  const rights = [];
  for (let right = Math.ceil(Number(start) / step) * step; right - step < Number(end); right += step) rights.push(right);
  return { series: MANY.map(({ name, weight, memory }, index) => ({
    labels: pairs({ service_name: name }),
    points: rights.map((right) => ({ value: gauge ? memory * 2 ** 30 : weight * 1e9 * (step / 1000) * (1 + 0.2 * Math.sin(right / 9e5 + index)), timestamp: String(right) })),
  })) };
}

const METHODS = {
  ProfileTypes(request, mode, now) {
    if (inRange(request, mode, now).length === 0) return {};
    return { profileTypes: TYPES.map((ID) => { const [name, sampleType, sampleUnit, periodType, periodUnit] = ID.split(':'); return { ID, name, sampleType, sampleUnit, periodType, periodUnit }; }) };
  },
  LabelNames(request, mode, now) {
    const names = new Set(selected(request, mode, now).flatMap(({ labels }) => Object.keys(labels)));
    return names.size ? { names: ['__profile_type__', ...names].sort() } : {};
  },
  LabelValues(request, mode, now) {
    if (!request.name) throw fault('invalid_argument', 'name is required');
    const values = new Set(selected(request, mode, now).map(({ labels }) => labels[request.name]).filter(Boolean));
    return values.size ? { names: [...values].sort() } : {};
  },
  Series(request, mode, now) {
    const seen = new Map();
    for (const { labels } of selected(request, mode, now)) {
      for (const type of TYPES) {
        const all = { ...labels, __profile_type__: type };
        const wanted = request.labelNames?.length ? Object.fromEntries(request.labelNames.filter((name) => all[name]).map((name) => [name, all[name]])) : all;
        seen.set(JSON.stringify(wanted), wanted);
      }
    }
    return seen.size ? { labelsSet: [...seen.values()].map((labels) => ({ labels: pairs(labels) })) } : {};
  },
  SelectSeries(request, mode, now) {
    const first = now - ageOf(mode);
    const step = Number(request.step) * 1000;
    if (!(step >= 1)) throw fault('invalid_argument', 'step must be positive');
    const type = request.profileTypeID;
    const groups = new Map();
    const gauge = /inuse_|goroutine/.test(type);
    if (mode === 'many') return manySeries(request, step, gauge);
    for (const series of selected(request, mode, now)) {
      const labels = Object.fromEntries((request.groupBy ?? []).map((name) => [name, series.labels[name] ?? '']));
      const key = JSON.stringify(labels);
      const points = groups.get(key) ?? { labels, points: new Map() };
      for (let right = Math.ceil(Number(request.start) / step) * step; right - step < Number(request.end); right += step) {
        let sum = 0;
        let count = 0;
        const stride = Math.max(15_000, step / 20);
        for (let at = right - step + 7000; at < right; at += stride) {
          if (at < Math.max(first, Number(request.start)) || at >= Number(request.end) || !has(series, at, now)) continue;
          sum += level(series, type, at) * (gauge ? 1 : stride / 1000);
          count += 1;
        }
        if (count === 0) continue;
        const value = gauge && request.aggregation === 1 ? sum / count : sum;
        points.points.set(right, (points.points.get(right) ?? 0) + value);
      }
      groups.set(key, points);
    }
    const series = [...groups.values()].filter(({ points }) => points.size > 0).map(({ labels, points }) => ({ labels: pairs(labels), points: [...points].sort((a, b) => a[0] - b[0]).map(([timestamp, value]) => ({ value, timestamp: String(timestamp) })) }));
    return series.length ? { series } : {};
  },
  GetProfileStats(_, mode, now) {
    return mode === 'empty' ? {} : { dataIngested: true, oldestProfileTime: String(now - ageOf(mode)), newestProfileTime: String(now) };
  },
  Diff({ left, right }, mode, now) {
    const [before, after] = [left, right].map((side) => mergedTree(side, mode, now) ?? node('total', '', 0, ''));
    return { flamegraph: encodeDiff(before, after) };
  },
  SelectMergeStacktraces(request, mode, now, nodes) {
    const merged = mergedTree(request, mode, now);
    if (!merged) return { flamegraph: { names: ['total'], levels: [{ values: ['0', '0', '0', '0'] }], total: '0', maxSelf: '0' } };
    const site = (request.stackTraceSelector?.callSite ?? []).map(({ name }) => name);
    const asked = Number(request.maxNodes ?? 8192);
    const all = site.length > 0 || asked > 16_384;
    return { flamegraph: encode(all && site.length > 0 ? below(merged, site) : merged, all ? asked : Math.min(asked, nodes), request.frameDetails === true) };
  },
};

/** Encodes a difference as Pyroscope does: x, total and self of the left side, x, total and self of the right side, and the name. */
function encodeDiff(left, right) {
  for (const tree of [left, right]) roundTree(tree);
  const names = ['total'];
  const levels = [];
  const empty = { total: 0, self: 0, children: new Map() };
  let row = [{ name: 'total', sides: [left, right], x: [0, 0] }];
  while (row.length > 0) {
    const values = [];
    const next = [];
    const ends = [0, 0];
    for (const { name, sides, x } of row) {
      if (!names.includes(name)) names.push(name);
      for (const side of [0, 1]) values.push(String(x[side] - ends[side]), String(sides[side].total), String(sides[side].self));
      values.push(String(names.indexOf(name)));
      const inner = [0, 1].map((side) => x[side] + sides[side].self);
      for (const side of [0, 1]) ends[side] = x[side] + sides[side].total;
      for (const child of [...new Set(sides.flatMap(({ children }) => [...children.keys()]))].sort()) {
        const both = sides.map(({ children }) => children.get(child) ?? empty);
        if (both[0].total + both[1].total === 0) continue;
        next.push({ name: child, sides: both, x: [...inner] });
        for (const side of [0, 1]) inner[side] += both[side].total;
      }
    }
    levels.push({ values });
    row = next;
  }
  return { names, levels, total: String(left.total + right.total), leftTicks: String(left.total), rightTicks: String(right.total) };
}

function roundTree(tree) {
  const rounded = (at) => {
    at.self = Math.round(at.self);
    for (const next of at.children.values()) rounded(next);
  };
  rounded(tree);
  totalOf(tree);
}

/** Returns the tree with only the part below a chain of callers. */
function below(tree, site) {
  const root = node('total', '', 0, '');
  let [at, from] = [root, tree];
  for (const [depth, name] of site.entries()) {
    from = from.children.get(name);
    if (!from) return root;
    const next = depth === site.length - 1 ? from : { ...from, self: 0, children: new Map() };
    at.children.set(name, next);
    at = next;
  }
  return root;
}

function mergedTree(request, mode, now) {
  const type = request.profileTypeID ?? '';
  if (type.split(':').length < 5) throw fault('invalid_argument', `profile-type-ID must have 5 parts: ${type}`);
  const kind = type.startsWith('process_cpu') ? 'cpu' : 'heap';
  const start = Math.max(Number(request.start), now - ageOf(mode));
  const end = Math.min(Number(request.end), now);
  const trees = new Map();
  const extras = [];
  for (const series of selected(request, mode, now)) {
    let value = 0;
    let uneven = 0;
    const stride = Math.max(15_000, (end - start) / 200);
    for (let at = start; at < end; at += stride) {
      if (!has(series, at, now)) continue;
      const part = (level(series, type, at) * (stride / 1000)) / 1e9;
      value += part;
      uneven += part * random(Math.floor(at / 15_000))();
    }
    if (value === 0) continue;
    trees.set(series.service, (trees.get(series.service) ?? 0) + value);
    if (series.service.name === 'payments') {
      // A function whose share varies over time, and a function that a release added.
      extras.push([single('github.com/acme/shop/payments.(*Service).uneven'), uneven * 1e8]);
      if (series.labels.version === RELEASE) extras.push([single('github.com/acme/shop/payments.(*Tax).roundEachCent'), value * 3e8]);
    }
  }
  return trees.size === 0 ? null : merge([...[...trees].map(([service, factor]) => [profileOf(service, kind), factor]), ...extras]);
}

/** Returns a tree of one function. */
function single(name) {
  const root = node('total', '', 0, '');
  child(root, name, 'payments/tax.go', 7, '/app/payments').self = 1;
  return root;
}

const varint = (value) => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
const bytesField = (number, bytes) => [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
const intField = (number, value) => [...varint(number * 8), ...varint(value)];

/** Returns a tree of one path. */
export function path(names, value) {
  const root = node('total', '', 0, '');
  chain(root, names.map((name) => [name, '', 0]), '').self = value;
  return root;
}

/** Encodes a tree as pprof: every stack with an own value, with a type and unit if they are given. A function has several lines, depending on its caller. */
export function pprof(tree, type = []) {
  const strings = [''];
  const texts = new Map([['', 0]]);
  const text = (value) => {
    if (!texts.has(value)) texts.set(value, strings.push(value) - 1);
    return texts.get(value);
  };
  const functions = new Map();
  const locations = new Map();
  const out = [];
  const locationOf = (at, caller) => {
    if (!functions.has(at.name)) {
      functions.set(at.name, functions.size + 1);
      out.push(...bytesField(5, [...intField(1, functions.size), ...intField(2, text(at.name)), ...intField(4, text(at.file ?? ''))]));
    }
    const line = at.line > 0 ? at.line + (seedOf(caller.name) % 4) : 0;
    const key = `${functions.get(at.name)} ${line}`;
    if (!locations.has(key)) {
      locations.set(key, locations.size + 1);
      out.push(...bytesField(4, [...intField(1, locations.size), ...bytesField(4, [...intField(1, functions.get(at.name)), ...intField(2, line)])]));
    }
    return locations.get(key);
  };
  const walk = (at, stack) => {
    if (at.self >= 1) out.push(...bytesField(2, [...bytesField(1, stack.flatMap(varint)), ...bytesField(2, varint(Math.round(at.self)))]));
    for (const next of at.children.values()) walk(next, [locationOf(next, at), ...stack]);
  };
  walk(tree, []);
  if (type.length > 0) for (const field of [1, 11]) out.push(...bytesField(field, [...intField(1, text(type[0])), ...intField(2, text(type[1]))]));
  return Buffer.from([...out, ...strings.flatMap((value) => bytesField(6, Buffer.from(value)))]);
}

/** Reads the message that the page encodes by hand: profile_typeID = 1, label_selector = 2, start = 3, end = 4. */
function readMergeRequest(bytes) {
  const out = {};
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at];
      at += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = number();
    const name = { 1: 'profileTypeID', 2: 'labelSelector', 3: 'start', 4: 'end' }[tag >> 3];
    if (tag % 8 === 0) out[name] = number();
    else {
      const length = number();
      out[name] = bytes.subarray(at, at + length).toString();
      at += length;
    }
  }
  return out;
}

const MEDIA = { '.woff2': 'font/woff2', '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
export const CSP = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/** The policy of speedscope, which writes its rules into a style element that is empty at first. */
const SPEEDSCOPE_CSP = `${CSP}; style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='`;

/** Returns a view or a file of the page; `missing` answers all other paths. */
export async function servePage(path, response, missing) {
  const views = JSON.parse(await readFile(new URL('views.json', DIST), 'utf8').catch(() => '["", "profile"]'));
  const name = views.includes(path.slice(1)) ? 'index.html' : path.slice(1);
  try {
    if (name.includes('..')) throw new Error('no');
    const body = await readFile(new URL(name, DIST));
    response.writeHead(200, { 'content-type': MEDIA[extname(name)] ?? 'application/octet-stream', 'content-security-policy': path.startsWith('/speedscope/') ? SPEEDSCOPE_CSP : CSP, 'x-content-type-options': 'nosniff' });
    response.end(body);
  } catch {
    await missing();
  }
}

/** Answers a path that is not a view: with 404 and the page for a person, as the real server does, and with text for a program. */
async function notFound(request, response) {
  const person = request.headers.accept?.includes('text/html') ?? false;
  const body = person ? await readFile(new URL('index.html', DIST)) : 'not found\n';
  response.writeHead(404, { 'content-type': person ? MEDIA['.html'] : 'text/plain', 'content-security-policy': CSP });
  response.end(body);
}

/** Answers the requests of the page to other services. */
const ROUTES = [
  ['/capabilities.v1.FeatureFlagsService/GetFeatureFlags', () => [200, { featureFlags: [] }]],
  ['/api/v1/session', () => [200, { asks: false, identity: null, logged_in: false }]],
];

/**
 * Starts the stand-in on a free port of 127.0.0.1. While it runs, a test can change `mode`, add methods to `fails`, reduce `nodes`
 * (the maximum of a flame graph, unless a request wants more detail), set the current time (`now`), hold back a method by `hold`, and add
 * routes to `routes`. This map contains a function for each path. The function receives the URL and the body, and returns a status
 * and JSON, or text.
 */
export async function startMock({ mode = 'normal', port = 0 } = {}) {
  const now = () => mock.now ?? Date.now();
  const held = new Map();
  const mock = { mode, now: undefined, nodes: Infinity, fails: new Set(), routes: new Map(ROUTES), calls: [], url: '', close: () => {} };
  /** Holds back the responses of a method, and returns a function that releases them. */
  mock.hold = (method) => {
    let release;
    const gate = new Promise((resolve) => { release = resolve; });
    held.set(method, { gate, release });
    return () => { held.delete(method); release(); };
  };
  /** Restores the initial state. */
  mock.reset = () => {
    Object.assign(mock, { mode, now: undefined, nodes: Infinity });
    mock.fails.clear();
    mock.routes = new Map(ROUTES);
    for (const { release } of held.values()) release();
    held.clear();
  };
  /** Returns the requests of a method, without the first `from` requests of all methods. */
  mock.asked = (method, from = 0) => mock.calls.slice(from).filter((call) => call.method === method).map(({ request }) => request);
  // Links with two names of 10,000 characters are longer than Node's default limit.
  const server = createServer({ maxHeaderSize: 2 ** 18 }, async (request, response) => {
    const url = new URL(request.url, 'http://mock');
    let { pathname } = url;
    if (pathname.startsWith('/profile/')) pathname = pathname.slice('/profile'.length);
    const method = /^\/querier\.v1\.QuerierService\/(\w+)$/.exec(pathname)?.[1];
    const route = mock.routes.get(pathname);
    if (!method && !route) {
      await servePage(pathname, response, () => notFound(request, response));
      return;
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const answer = (status, value) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof value === 'string' ? value : JSON.stringify(value));
    };
    if (route) return answer(...(await route(url, body)));
    try {
      const binary = request.headers['content-type'] === 'application/proto';
      const asked = binary ? readMergeRequest(body) : JSON.parse(body.toString() || '{}');
      mock.calls.push({ method, request: asked });
      await held.get(method)?.gate;
      if (mock.mode === 'slow') await new Promise((resolve) => setTimeout(resolve, 1500));
      if (mock.mode === 'error' || mock.fails.has(method)) throw fault('unavailable', 'the store is replaying its log; 41 segments to go', 503);
      if (method === 'SelectMergeProfile' && binary) {
        response.writeHead(200, { 'content-type': 'application/proto' });
        response.end(pprof(mergedTree(asked, mock.mode, now()) ?? node('', '', 0, '')));
        return;
      }
      const made = METHODS[method];
      if (!made) throw fault('unimplemented', `${method} is not implemented`, 501);
      answer(200, made(asked, mock.mode, now(), mock.nodes));
    } catch (error) {
      answer(error.status ?? 500, { code: error.code ?? 'internal', message: error.message });
    }
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  mock.url = `http://127.0.0.1:${server.address().port}/`;
  mock.close = () => { server.closeAllConnections(); return new Promise((resolve) => server.close(resolve)); };
  return mock;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await startMock({ mode: process.env.MODE ?? 'normal', port: Number(process.env.PORT ?? 4040) });
  console.log(`stand-in server on ${mock.url}`);
}
