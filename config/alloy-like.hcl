// Profiles of Go programs, from their pprof endpoints into Alluvium (or Pyroscope).
//
//   alluvium serve                          keeps and shows, on http://localhost:4040
//   alluvium run config/alloy-like.hcl      collects
//
// The twin of alloy-like.river in HCL. Change it while it runs and call
// `curl -X POST localhost:12345/-/reload`; a mistake changes nothing.

logging {
  level  = "info"
  format = "logfmt"
}

// Who is profiled: files in the format of Prometheus' file_sd, read again when
// they change. Paths are relative to the folder in which alluvium was started;
// ALLUVIUM_TARGETS names another file.
discovery "file" "local" {
  files            = [coalesce(sys::env("ALLUVIUM_TARGETS"), "config/targets.json")]
  refresh_interval = "10s"
}

// What the series are called. Labels that begin with `__` end here.
discovery "relabel" "local" {
  targets = discovery.file.local.targets

  // Where a profile came from.
  rule {
    source_labels = ["__address__"]
    target_label  = "instance"
  }

  // The host without its port names a service that its file does not name.
  rule {
    source_labels = ["service_name", "__address__"]
    regex         = ";([^:]+)(?::\\d+)?"
    target_label  = "service_name"
  }

  // A file may switch a target off: `"profiles": "off"`.
  rule {
    action        = "drop"
    source_labels = ["profiles"]
    regex         = "off"
  }
}

// How they are profiled: every type that Go's net/http/pprof has, all 15 seconds.
// CPU is sampled for 14 of them; of memory, block and mutex the change since
// the last scrape is sent.
pyroscope "scrape" "go" {
  targets         = discovery.relabel.local.output
  forward_to      = [pyroscope.write.local.receiver]
  scrape_interval = "15s"
  scrape_timeout  = "10s"

  profiling_config {
    profile "process_cpu" {
      enabled = true
    }

    profile "memory" {
      enabled = true
    }

    profile "goroutine" {
      enabled = true
    }

    // Empty until the program calls runtime.SetMutexProfileFraction.
    profile "mutex" {
      enabled = true
    }

    // Empty until the program calls runtime.SetBlockProfileRate.
    profile "block" {
      enabled = true
    }

    // For programs that serve them: wall-clock time (felixge/fgprof) and
    // changes counted in the program (grafana/pyroscope-go/godeltaprof).
    profile "fgprof" {
      enabled = false
    }

    profile "godeltaprof_memory" {
      enabled = false
    }

    profile "godeltaprof_mutex" {
      enabled = false
    }

    profile "godeltaprof_block" {
      enabled = false
    }
  }
}

// Where profiles go. They wait on disk, under --storage.path, while the server
// is away; ALLUVIUM_SERVER names another one.
pyroscope "write" "local" {
  endpoint {
    url = coalesce(sys::env("ALLUVIUM_SERVER"), "http://localhost:4040")
  }

  external_labels = {
    "collector" = constants.hostname
  }
}
