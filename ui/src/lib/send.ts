// Instructions for sending profiles to this server, for each language and tool, with the address of the server. If the server requires
// authentication, the programs read a token from their environment, and collectors read it from a file. The instructions never contain a token.

export interface Way {
  /** Name in the URL. */
  key: string;
  label: string;
  group: 'Programs' | 'Machines' | 'By hand';
  /** Description of the tool or language support, and its requirements. */
  what: string;
  steps: readonly { title: string; text: string }[];
}

/** The environment variable from which programs read the token, and the file from which collectors read it. */
export const TOKEN = 'ALLUVIUM_TOKEN';
export const TOKEN_FILE = '/etc/alluvium/token';

/** The steps to create a token if the server requires authentication. */
export const TOKEN_STEPS: Way['steps'] = [
  { title: 'On the machine of the server: create a token that can only send profiles. It is shown once', text: 'alluvium token new my-service --role write' },
  { title: `On the machine that sends profiles: put the token into the environment variable ${TOKEN}, or into a file for a collector`, text: `read -rs ${TOKEN} && export ${TOKEN}
printf %s "$${TOKEN}" | sudo install -D -m 600 /dev/stdin ${TOKEN_FILE}` },
];

const collector = (server: string, asks: boolean, source: string): string => `${source}

pyroscope.write "here" {
  endpoint {
    ${asks ? `url               = "${server}"
    bearer_token_file = "${TOKEN_FILE}"` : `url = "${server}"`}
  }
}`;

/** Returns all ways to send profiles. `server` is the address of the server, without a slash at the end. `asks` is true if the server requires authentication. */
export function waysTo(server: string, asks: boolean): readonly Way[] {
  /** Returns the text if the server requires authentication, else an empty text. */
  const token = (text: string): string => (asks ? text : '');
  const curl = `curl${token(` -H "Authorization: Bearer $${TOKEN}"`)} --data-binary`;
  return [
    {
      key: 'go', label: 'Go', group: 'Programs',
      what: 'The program pushes its own CPU, memory and goroutine profiles. A Go program that already serves /debug/pprof needs no change: see Scrape /debug/pprof.',
      steps: [
        { title: 'Add the library', text: 'go get github.com/grafana/pyroscope-go' },
        { title: 'Start it at the beginning of main', text: `pyroscope.Start(pyroscope.Config{
    ApplicationName: "my-service",
    ServerAddress:   "${server}",${token(`
    HTTPHeaders:     map[string]string{"Authorization": "Bearer " + os.Getenv("${TOKEN}")},`)}
})` },
      ],
    },
    {
      key: 'java', label: 'Java', group: 'Programs',
      what: 'A Java agent that the JVM loads with the program, without recompilation. It records CPU time, allocations and waits for locks with async-profiler.',
      steps: [{ title: 'Start the program with the Pyroscope agent', text: `export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${server}${token(`
export PYROSCOPE_AUTH_TOKEN="$${TOKEN}"   # sent as Authorization: Bearer`)}
export PYROSCOPE_FORMAT=jfr
java -javaagent:pyroscope.jar -jar my-service.jar` }],
    },
    {
      key: 'python', label: 'Python', group: 'Programs',
      what: 'A sampling profiler inside the process.',
      steps: [
        { title: 'Install', text: 'pip install pyroscope-io' },
        { title: 'Start it at the beginning of the program', text: `${token('import os\n')}import pyroscope

pyroscope.configure(
    application_name="my-service",
    server_address="${server}",${token(`
    http_headers={"Authorization": "Bearer " + os.environ["${TOKEN}"]},`)}
)` },
      ],
    },
    {
      key: 'node', label: 'Node.js', group: 'Programs',
      what: 'The CPU time and the heap of a Node.js process.',
      steps: [
        { title: 'Install', text: 'npm install @pyroscope/nodejs' },
        { title: 'Start it at the beginning of the program', text: `const Pyroscope = require('@pyroscope/nodejs');

Pyroscope.init({ appName: 'my-service', serverAddress: '${server}'${token(`,
    authToken: process.env.${TOKEN} /* sent as Authorization: Bearer */`)} });
Pyroscope.start();` },
      ],
    },
    {
      key: 'rust', label: 'Rust', group: 'Programs',
      what: 'A sampling profiler inside the process.',
      steps: [
        { title: 'Add the crates', text: 'cargo add pyroscope@0.5 pyroscope_pprofrs@0.2' },
        { title: 'Start it at the beginning of main', text: `let agent = pyroscope::PyroscopeAgent::builder("${server}", "my-service")
    .backend(pyroscope_pprofrs::pprof_backend(
        pyroscope_pprofrs::PprofConfig::new().sample_rate(100),
    ))${token(`
    .auth_token(std::env::var("${TOKEN}")?) // sent as Authorization: Bearer`)}
    .build()?;
let running = agent.start()?;` },
      ],
    },
    {
      key: 'ruby', label: 'Ruby', group: 'Programs',
      what: 'A sampling profiler inside the process.',
      steps: [
        { title: 'Add the gem', text: 'bundle add pyroscope' },
        { title: 'Start it at the beginning of the program', text: `require 'pyroscope'

Pyroscope.configure do |config|
  config.application_name = 'my-service'
  config.server_address = '${server}'${token(`
  # Sent as Authorization: Basic. With a token as the password, any user name works.
  config.basic_auth_username = 'token'
  config.basic_auth_password = ENV['${TOKEN}']`)}
end` },
      ],
    },
    {
      key: 'dotnet', label: '.NET', group: 'Programs',
      what: 'A profiler that the runtime loads, without recompilation. It needs Linux on x86-64. The two .so libraries below are in the image pyroscope/pyroscope-dotnet.',
      steps: [{ title: 'Start the program with these variables', text: `export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${server}${token(`
export PYROSCOPE_HTTP_HEADERS="{\\"Authorization\\": \\"Bearer $${TOKEN}\\"}"`)}
export PYROSCOPE_PROFILING_ENABLED=1
export CORECLR_ENABLE_PROFILING=1
export CORECLR_PROFILER={BD1A650D-AC5D-4896-B64F-D6FA25D6B26A}
export CORECLR_PROFILER_PATH=/dotnet/Pyroscope.Profiler.Native.so
export LD_PRELOAD=/dotnet/Pyroscope.Linux.ApiWrapper.x64.so
dotnet my-service.dll` }],
    },
    {
      key: 'ebpf', label: 'Whole machine (eBPF)', group: 'Machines',
      what: 'The CPU time of every process on a Linux machine, without a change to any of them. Needs Linux 6.1 and root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.',
      steps: [
        { title: 'Write machine.river', text: collector(server, asks, `discovery.process "all" { }

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
      what: 'Scrapes programs that serve pprof over HTTP, such as Go programs, every 15 seconds.',
      steps: [
        { title: 'Write scrape.river', text: collector(server, asks, `pyroscope.scrape "programs" {
  targets    = [{"__address__" = "localhost:9090", "service_name" = "my-service"}]
  forward_to = [pyroscope.write.here.receiver]
}`) },
        { title: 'Run it, or add both blocks to a Grafana Alloy configuration', text: 'alluvium run scrape.river' },
      ],
    },
    {
      key: 'otel', label: 'OpenTelemetry Collector', group: 'Machines',
      what: 'Profiles that an OpenTelemetry Collector receives as OTLP, for example from the OpenTelemetry eBPF profiler.',
      steps: [
        { title: 'Add this to the configuration of the collector', text: `exporters:
  otlphttp/profiles:
    endpoint: ${server}${token(`
    headers:
      Authorization: "Bearer \${env:${TOKEN}}"`)}
service:
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [otlphttp/profiles]` },
        { title: 'Start the collector with the feature gate for profiles', text: 'otelcol --feature-gates=service.profilesSupport --config=collector.yaml' },
      ],
    },
    {
      key: 'files', label: 'Files', group: 'By hand',
      what: 'Existing profiles, of any age that the server accepts. To look at one without storing it, drop it on this page.',
      steps: [
        { title: 'pprof', text: `alluvium upload cpu.pprof --label service_name=my-service --override-timestamp --url ${server}${token(`   # reads $${TOKEN}`)}` },
        { title: 'The same with curl', text: `${curl} @cpu.pprof '${server}/ingest?name=my-service&format=pprof'` },
        { title: 'Collapsed stacks', text: `printf 'main;work 30\\nmain;idle 70\\n' | ${curl} @- '${server}/ingest?name=my-service'` },
        { title: 'perf, 99 samples per second', text: `perf record -F 99 -g -- my-program
perf script | ${curl} @- '${server}/ingest?name=my-program&sampleRate=99&format=perf_script'` },
      ],
    },
  ];
}
