//! A synthetic service: its functions, and the stacks and allocation sites that a seed determines.
//!
//! Endpoints and background work are trunks of frames under which call paths branch. Each path shares its start with an
//! earlier path, so the paths form a tree.

use std::f64::consts::TAU;

use crate::fleet::shape::FleetShape;
use crate::synthetic::Random;

const LIBRARIES: [(&str, &str); 10] = [
    ("runtime", "/usr/local/go/src/runtime"),
    ("net/http", "/usr/local/go/src/net/http"),
    ("encoding/json", "/usr/local/go/src/encoding/json"),
    ("database/sql", "/usr/local/go/src/database/sql"),
    ("bufio", "/usr/local/go/src/bufio"),
    ("compress/flate", "/usr/local/go/src/compress/flate"),
    ("crypto/tls", "/usr/local/go/src/crypto/tls"),
    (
        "google.golang.org/grpc/internal/transport",
        "/go/pkg/mod/google.golang.org/grpc@v1.71.0/internal/transport",
    ),
    (
        "google.golang.org/protobuf/internal/impl",
        "/go/pkg/mod/google.golang.org/protobuf@v1.36.6/internal/impl",
    ),
    (
        "github.com/prometheus/client_golang/prometheus",
        "/go/pkg/mod/github.com/prometheus/client_golang@v1.21.1/prometheus",
    ),
];
const SERVICES: [&str; 20] = [
    "cart",
    "checkout",
    "catalog",
    "search",
    "pricing",
    "payment",
    "shipping",
    "inventory",
    "review",
    "account",
    "session",
    "recommend",
    "frontend",
    "gateway",
    "mailer",
    "billing",
    "ledger",
    "report",
    "media",
    "audit",
];
const PARTS: [&str; 6] = ["server", "storage", "cache", "codec", "rules", "client"];
const NAMESPACES: [&str; 5] = ["shop", "platform", "finance", "edge", "data"];
const VERBS: [&str; 12] = [
    "Read", "write", "Handle", "parse", "Encode", "lookup", "Merge", "flush", "Decode", "acquire", "Validate", "scan",
];
const NOUNS: [&str; 12] = [
    "Frame", "Header", "Row", "request", "Buffer", "Index", "Price", "Session", "Conn", "Batch", "Item", "Cursor",
];

/// One service: its functions, and the stacks from which its profiles are drawn.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) namespace: &'static str,
    pub(super) build_id: String,
    pub(super) binary: String,
    /// Name, file and start line.
    pub(super) functions: Vec<(String, String, i64)>,
    /// Function and line of each location. The index determines the address.
    pub(super) locations: Vec<(u32, i64)>,
    /// Stacks as indices of `locations`, leaf first.
    pub(super) stacks: Vec<Vec<u32>>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) sites: Vec<Site>,
}

/// An endpoint or background work of a program. The load of all its stacks rises and falls together.
pub(super) struct Endpoint {
    /// Cumulative weights of the stacks.
    pub(super) sums: Vec<f64>,
    pub(super) stacks: Vec<u32>,
    pub(super) weight: f64,
    pub(super) period: f64,
    pub(super) phase: f64,
}

/// A place in a program that allocates memory.
pub(super) struct Site {
    pub(super) stack: u32,
    pub(super) size: i64,
    /// Mean number of sampled objects that are in use.
    pub(super) live: f64,
    /// Mean number of sampled allocations per tick.
    pub(super) rate: f64,
    pub(super) period: f64,
    pub(super) phase: f64,
}

impl Program {
    /// Creates service `index` of a fleet.
    pub(super) fn new(index: usize, shape: &FleetShape, seed: u64) -> Self {
        let base = SERVICES[index % SERVICES.len()];
        let name = match index / SERVICES.len() {
            0 => base.to_owned(),
            round => format!("{base}-{round}"),
        };
        let mut random = Random::new(seed ^ (index as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        let mut program = Self {
            namespace: NAMESPACES[index % NAMESPACES.len()],
            build_id: format!("{:016x}{:016x}", random.next(), random.next()),
            binary: format!("/app/{name}"),
            functions: functions(&name),
            locations: Vec::new(),
            stacks: Vec::new(),
            endpoints: Vec::new(),
            sites: Vec::new(),
            name,
        };
        // Each function has three locations, which call other functions or use CPU themselves.
        for (function, (.., start)) in program.functions.iter().enumerate() {
            for site in 0..3 {
                program.locations.push((function as u32, start + 4 + site * 9));
            }
        }
        let endpoints = 14;
        for endpoint in 0..endpoints {
            let trunk = program.trunk(endpoint, &mut random);
            let count = (shape.cpu_stacks / endpoints).max(1);
            let first = program.stacks.len() as u32;
            program.grow(&trunk, count, &mut random);
            let mut sum = 0.0;
            let sums = (0..count)
                .map(|rank| {
                    sum += 1.0 / (rank as f64 + 1.7).powf(1.25);
                    sum
                })
                .collect();
            program.endpoints.push(Endpoint {
                sums,
                stacks: (first..first + count as u32).collect(),
                weight: 1.0 / (endpoint as f64 + 1.0).powf(0.8),
                period: 20.0 + random.below(160) as f64,
                phase: random.unit() * TAU,
            });
        }
        for site in 0..shape.heap_sites {
            if site % 20 == 0 {
                let trunk = program.trunk(site / 20, &mut random);
                program.grow(&trunk, 20.min(shape.heap_sites - site), &mut random);
            }
            let rank = random.below(shape.heap_sites as u64) as f64;
            program.sites.push(Site {
                stack: (program.stacks.len() - 20.min(shape.heap_sites - site / 20 * 20) + site % 20) as u32,
                size: 16 << random.below(13),
                live: 60.0 / (rank + 1.0).powf(0.7) - 1.2,
                rate: 25.0 / (random.below(400) as f64 + 1.0).powf(0.9) - 0.05,
                period: 40.0 + random.below(400) as f64,
                phase: random.unit() * TAU,
            });
        }
        program
    }

    /// Returns the locations of the frames from the root of a goroutine to a handler, root first.
    fn trunk(&self, endpoint: usize, random: &mut Random) -> Vec<u32> {
        let mut trunk = vec![2, 40 * 3 + (endpoint % 3) as u32];
        for depth in 0..6 + random.below(5) {
            trunk.push(((41 + depth * 3) * 3 + random.below(2)) as u32);
        }
        let own = (LIBRARIES.len() * 40) as u64;
        let rest = self.functions.len() as u64 - own;
        for step in 0..3 + random.below(6) {
            trunk.push(((own + (endpoint as u64 * 11 + step * 5) % rest) * 3 + random.below(2)) as u32);
        }
        trunk
    }

    /// Adds `count` stacks below a trunk. Each stack shares its start with an earlier stack, so the stacks form a tree.
    fn grow(&mut self, trunk: &[u32], count: usize, random: &mut Random) {
        let functions = self.functions.len() as u64;
        let first = self.stacks.len();
        for _ in 0..count {
            let mut path: Vec<u32> = match self.stacks.len() - first {
                0 => trunk.to_vec(),
                grown => {
                    let other = &self.stacks[first + random.below(grown as u64) as usize];
                    let kept = trunk.len() + random.below((other.len() - trunk.len()) as u64 + 1) as usize;
                    other.iter().rev().take(kept).copied().collect()
                }
            };
            let added = 1 + random.below(9);
            for _ in 0..added {
                if path.len() >= 62 {
                    break;
                }
                let caller = u64::from(path.last().copied().unwrap_or(0)) / 3;
                // A function calls only a few other functions, which are near it or in a library.
                let callee = match random.below(3) {
                    0 => (caller * 13 + 7 + random.below(3)) % (LIBRARIES.len() as u64 * 40),
                    _ => (caller + 1 + random.below(4)) % functions,
                };
                path.push((callee * 3 + random.below(3)) as u32);
            }
            path.reverse();
            self.stacks.push(path);
        }
    }
}

/// Returns the functions of a service: 40 per library, which all services share, and 240 of its own.
fn functions(service: &str) -> Vec<(String, String, i64)> {
    let name = |package: &str, index: usize| {
        let (verb, noun) = (VERBS[index * 5 % VERBS.len()], NOUNS[(index / 3 + index) % NOUNS.len()]);
        match index % 4 {
            0 => format!("{package}.{verb}{noun}"),
            3 => format!("{package}.(*{noun}).{verb}.func{}", index % 5 + 1),
            _ => format!("{package}.(*{noun}).{verb}{}", NOUNS[(index * 7 + 1) % NOUNS.len()]),
        }
    };
    let mut functions = Vec::new();
    for (package, folder) in LIBRARIES {
        for index in 0..40 {
            let file = format!("{folder}/{}.go", NOUNS[index / 4].to_lowercase());
            functions.push((name(package, index), file, (index % 12 * 60 + 17) as i64));
        }
    }
    for index in 0..240 {
        let part = PARTS[index / 40 % PARTS.len()];
        let package = format!("github.com/acme/{service}/internal/{part}");
        let file = format!(
            "/src/{service}/internal/{part}/{}.go",
            NOUNS[index / 5 % NOUNS.len()].to_lowercase()
        );
        functions.push((name(&package, index), file, (index % 9 * 70 + 21) as i64));
    }
    functions
}
