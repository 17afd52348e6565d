// Presets of frames that do not belong to the program itself, by language: runtimes, standard libraries, the C library, the
// kernel. Calls among frames of a preset can be folded into the first of these frames.

import { placeOf } from './packages.ts';

export interface Preset {
  /** Name in the URL. */
  key: string;
  label: string;
  /** Whether a frame belongs to the preset, by its package, name, file and binary. */
  has: (frame: { package: string; name: string; file: string; mapping: string }) => boolean;
}

// The first path elements of `go list std`. The path of a module has a dot in its first element.
const GO_STD = new Set(('archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html image index io iter log maps math mime net os path plugin '
  + 'reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak internal').split(' '));
const GO_RUNTIME = /^(runtime|internal\/(abi|runtime|bytealg|cpu|goarch|chacha8rand)|syscall|sync\/atomic)(\/|$)/;

const basename = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
/** Whether a frame may be Go: its name is like `net/http.(*conn).serve`, not `net::http`, and its file is unknown, Go or assembly. */
const isGo = (name: string, file: string): boolean => !/^[\w$]+::/.test(name) && (file === '' || /\.(go|s)$/.test(file));

/** The presets in the order of the menu. A frame belongs to the first preset that has it. */
export const PRESETS: readonly Preset[] = [
  { key: 'go', label: 'Go runtime', has: (frame) => isGo(frame.name, frame.file) && GO_RUNTIME.test(frame.package) },
  { key: 'go-std', label: 'Go standard library', has: (frame) => isGo(frame.name, frame.file) && GO_STD.has(frame.package.split('/', 1)[0]!) },
  { key: 'jvm', label: 'Java runtime and library', has: (frame) => /^(java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|clojure)(\.|$)/.test(frame.package) || /^libj(vm|ava|image|nio)\b/.test(basename(frame.mapping)) },
  { key: 'python', label: 'Python runtime and library', has: (frame) => /(^|\/)lib\/python[\d.]+\/(?!(site|dist)-packages\/)/.test(frame.file) || frame.file.startsWith('<frozen ') || /^(libpython|python[\d.]*$)/.test(basename(frame.mapping)) },
  { key: 'node', label: 'Node runtime', has: (frame) => frame.file.startsWith('node:') || frame.name.startsWith('node:') || /^(node|nodejs)$/.test(basename(frame.mapping)) },
  { key: 'ruby', label: 'Ruby runtime and library', has: (frame) => /(^|\/)lib\/ruby\/[\d.]+\//.test(frame.file) || /^(libruby|ruby[\d.]*$)/.test(basename(frame.mapping)) },
  { key: 'dotnet', label: '.NET runtime and library', has: (frame) => /^(System|Microsoft|Internal)[.!]/.test(frame.name) || /^lib(coreclr|clrjit|System)/.test(basename(frame.mapping)) },
  { key: 'rust', label: 'Rust standard library', has: (frame) => /^(std|core|alloc)$/.test(frame.package) && /::/.test(frame.name) },
  { key: 'native', label: 'C and C++ library', has: (frame) => /^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libc\+\+|libgcc_s|ld-linux|ld-musl|\[vdso\])[\w.\-+]*/.test(basename(frame.mapping)) },
  { key: 'kernel', label: 'Kernel', has: (frame) => frame.package === 'kernel' },
];

/** Returns the preset of each name: its index in `PRESETS` plus one, 0 for none. */
export function presetOfNames(names: readonly string[], files: readonly string[], mappings: readonly string[]): Uint8Array {
  return Uint8Array.from(names, (name, index) => {
    const file = files[index] ?? '';
    const mapping = mappings[index] ?? '';
    const frame = { package: placeOf(name, mapping, file).package, name, file, mapping };
    return PRESETS.findIndex((preset) => preset.has(frame)) + 1;
  });
}
