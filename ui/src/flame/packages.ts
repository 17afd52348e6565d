// The package of a function, and its short name. The form of the name distinguishes Go import paths, Rust and C++ scopes, Java packages,
// script files and native binaries, without a request to the server.

export interface Place {
  /** Package, crate, binary or file; empty if the name contains none. */
  package: string;
  /** True for a language runtime, libc or the kernel, which are shown desaturated. */
  runtime: boolean;
}

const JAVA_ROOTS = /^(java|javax|jdk|sun|com|org|io|kotlin|scala|akka|jakarta)\./;
const SCRIPT = /\.(py|pyx|rb|php|js|mjs|cjs|ts|tsx|lua|pl)$/;
const RUNTIME = /^(runtime|runtime\/.*|internal\/runtime\/.*|internal\/abi|std|core|alloc|java\.lang|java\.lang\..*|jdk\..*|sun\..*|kernel|libc.*|ld-linux.*|libpthread.*|libstdc\+\+.*|libjvm.*|libpython.*|\[vdso\])$/;

const basename = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

export function placeOf(name: string, mapping = '', file = ''): Place {
  const text = packageOf(name, mapping, file);
  return { package: text, runtime: RUNTIME.test(text) };
}

function packageOf(name: string, mapping: string, file: string): string {
  if (name === 'total' || name === 'other') return '';
  if (/^\[?(kernel|vmlinux)/.test(mapping) || /_\[k\]$|^\[k(ernel)?\]/.test(name)) return 'kernel';
  if (SCRIPT.test(file)) return file;
  // Arguments and type parameters may contain paths of their own.
  const scope = /^[<&*\s]*(?:dyn |impl )?([A-Za-z_$][\w$]*)::/.exec(name);
  if (scope) return scope[1]!;
  const head = name.replace(/[([{].*$/s, '');
  const slash = head.lastIndexOf('/');
  if (slash >= 0) {
    const last = head.slice(slash + 1);
    // Java's internal form has the class after the last slash, and a class begins with a capital letter.
    if (/^[A-Z]/.test(last)) return head.slice(0, slash).replace(/\//g, '.');
    const dot = last.indexOf('.');
    if (dot > 0) return head.slice(0, slash + 1 + dot);
    if (SCRIPT.test(last.split(/[\s:]/)[0]!)) return head.split(/[\s:]/)[0]!;
  }
  if (JAVA_ROOTS.test(head)) {
    const parts = head.split('.');
    const first = parts.findIndex((part) => /^[A-Z]/.test(part));
    if (first > 0) return parts.slice(0, first).join('.');
  }
  const dot = head.indexOf('.');
  if (dot > 0 && /^[A-Za-z_]\w*$/.test(head.slice(0, dot))) return head.slice(0, dot);
  return mapping === '' ? '' : basename(mapping);
}

/** Returns a name without the path of its package: `checkout.(*Service).Place`. */
export function shortName(name: string): string {
  const head = name.search(/[([{<]/);
  const slash = name.lastIndexOf('/', head < 0 ? name.length : head);
  return slash > 0 && slash < name.length - 1 ? name.slice(slash + 1) : name;
}
