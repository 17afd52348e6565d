// How profiles are sent to this server, per language and tool, with its address in each text.

export interface Way {
  /** Its word in the URL. */
  key: string;
  label: string;
  group: 'Programs' | 'Machines' | 'By hand';
  /** What it does, and what it needs. */
  what: string;
  steps: readonly { title: string; text: string }[];
}

const collector = (server: string, source: string): string => `${source}

pyroscope.write "here" {
  endpoint {
    url = "${server}"
  }
}`;

/** All ways to send to the server at this address, which has no slash at its end. */
export const waysTo = (server: string): readonly Way[] => [
  {
    key: 'go', label: 'Go', group: 'Programs',
    what: 'The program pushes its own CPU, memory and goroutine profiles. A Go program that already serves /debug/pprof needs no change: see Scrape.',
    steps: [
      { title: 'Add the library', text: 'go get github.com/grafana/pyroscope-go' },
      { title: 'Start it first thing in main', text: `pyroscope.Start(pyroscope.Config{
    ApplicationName: "my-service",
    ServerAddress:   "${server}",
})` },
    ],
  },
  {
    key: 'java', label: 'Java', group: 'Programs',
    what: 'An agent beside the program: nothing is compiled anew. It records CPU time, allocations and waits for locks by async-profiler.',
    steps: [{ title: 'Start the program with the agent of Pyroscope', text: `export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${server}
export PYROSCOPE_FORMAT=jfr
java -javaagent:pyroscope.jar -jar my-service.jar` }],
  },
  {
    key: 'python', label: 'Python', group: 'Programs',
    what: 'A sampler inside of the process.',
    steps: [
      { title: 'Install', text: 'pip install pyroscope-io' },
      { title: 'Start it first thing', text: `import pyroscope

pyroscope.configure(
    application_name="my-service",
    server_address="${server}",
)` },
    ],
  },
  {
    key: 'node', label: 'Node.js', group: 'Programs',
    what: 'CPU time and the heap of a process of Node.js.',
    steps: [
      { title: 'Install', text: 'npm install @pyroscope/nodejs' },
      { title: 'Start it first thing', text: `const Pyroscope = require('@pyroscope/nodejs');

Pyroscope.init({ appName: 'my-service', serverAddress: '${server}' });
Pyroscope.start();` },
    ],
  },
  {
    key: 'rust', label: 'Rust', group: 'Programs',
    what: 'A sampler inside of the process.',
    steps: [
      { title: 'Add the crates', text: 'cargo add pyroscope@0.5 pyroscope_pprofrs@0.2' },
      { title: 'Start it first thing in main', text: `let agent = pyroscope::PyroscopeAgent::builder("${server}", "my-service")
    .backend(pyroscope_pprofrs::pprof_backend(
        pyroscope_pprofrs::PprofConfig::new().sample_rate(100),
    ))
    .build()?;
let running = agent.start()?;` },
    ],
  },
  {
    key: 'ruby', label: 'Ruby', group: 'Programs',
    what: 'A sampler inside of the process.',
    steps: [
      { title: 'Add the gem', text: 'bundle add pyroscope' },
      { title: 'Start it first thing', text: `require 'pyroscope'

Pyroscope.configure do |config|
  config.application_name = 'my-service'
  config.server_address = '${server}'
end` },
    ],
  },
  {
    key: 'dotnet', label: '.NET', group: 'Programs',
    what: 'A profiler that the runtime loads: nothing is compiled anew. Linux, x86-64; the two libraries are in the image pyroscope/pyroscope-dotnet.',
    steps: [{ title: 'Start the program with these variables', text: `export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${server}
export PYROSCOPE_PROFILING_ENABLED=1
export CORECLR_ENABLE_PROFILING=1
export CORECLR_PROFILER={BD1A650D-AC5D-4896-B64F-D6FA25D6B26A}
export CORECLR_PROFILER_PATH=/dotnet/Pyroscope.Profiler.Native.so
export LD_PRELOAD=/dotnet/Pyroscope.Linux.ApiWrapper.x64.so
dotnet my-service.dll` }],
  },
  {
    key: 'ebpf', label: 'Whole machine (eBPF)', group: 'Machines',
    what: 'The CPU of every process of a Linux machine, without touching any of them. Needs Linux 6.1 and root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.',
    steps: [
      { title: 'Write machine.river', text: collector(server, `discovery.process "all" { }

discovery.relabel "programs" {
  targets = discovery.process.all.targets

  rule {
    source_labels = ["__meta_process_exe"]
    regex         = ".*/([^/]+)"
    target_label  = "service_name"
  }
}

pyroscope.ebpf "machine" {
  targets    = discovery.relabel.programs.output
  forward_to = [pyroscope.write.here.receiver]
}`) },
      { title: 'Run it', text: 'sudo alluvium run machine.river' },
    ],
  },
  {
    key: 'scrape', label: 'Scrape /debug/pprof', group: 'Machines',
    what: 'Programs that serve pprof over HTTP, as those in Go can, are asked every 15 seconds.',
    steps: [
      { title: 'Write scrape.river', text: collector(server, `pyroscope.scrape "programs" {
  targets    = [{"__address__" = "localhost:9090", "service_name" = "my-service"}]
  forward_to = [pyroscope.write.here.receiver]
}`) },
      { title: 'Run it, or put both blocks into a configuration of Grafana Alloy', text: 'alluvium run scrape.river' },
    ],
  },
  {
    key: 'otel', label: 'OpenTelemetry Collector', group: 'Machines',
    what: 'What a collector receives as OTLP, and what the eBPF profiler of OpenTelemetry sends to it.',
    steps: [
      { title: 'Into the configuration of the collector', text: `exporters:
  otlphttp/profiles:
    endpoint: ${server}
service:
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [otlphttp/profiles]` },
      { title: 'Pipelines of profiles are behind a feature gate', text: 'otelcol --feature-gates=service.profilesSupport --config=collector.yaml' },
    ],
  },
  {
    key: 'files', label: 'Files', group: 'By hand',
    what: 'Profiles that are there already, of any age that the server takes. To look at one without storing it, drop it on this page.',
    steps: [
      { title: 'pprof', text: `alluvium upload cpu.pprof --label service_name=my-service --override-timestamp --url ${server}` },
      { title: 'The same without our program', text: `curl --data-binary @cpu.pprof '${server}/ingest?name=my-service&format=pprof'` },
      { title: 'Collapsed stacks', text: `printf 'main;work 30\\nmain;idle 70\\n' | curl --data-binary @- '${server}/ingest?name=my-service'` },
      { title: 'perf, 99 times a second', text: `perf record -F 99 -g -- my-program
perf script | curl --data-binary @- '${server}/ingest?name=my-program&sampleRate=99&format=perf_script'` },
    ],
  },
];
