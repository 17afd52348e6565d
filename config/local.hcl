// Profiles of Go programs, from their pprof endpoints into Alluvium (or Pyroscope).
//
//   alluvium serve                    stores and shows them, on http://localhost:4040
//   alluvium run config/local.hcl     collects them
//
// This is local.alloy in HCL. After a change, reload the running collector:
// `curl -X POST localhost:12345/-/reload`. A file with a mistake is not applied.

logging {
  level  = "info"
  format = "logfmt"
}

// The targets come from files in the format of Prometheus' file_sd, which are read
// again when they change. Paths are relative to the folder in which alluvium was
// started; ALLUVIUM_TARGETS names another file.
discovery "file" "local" {
  files            = [coalesce(sys::env("ALLUVIUM_TARGETS"), "config/targets.json")]
  refresh_interval = "10s"
}

// The rules set the labels of the series. Labels that begin with `__` are dropped.
discovery "relabel" "local" {
  targets = discovery.file.local.targets

  // The address of the target.
  rule {
    source_labels = ["__address__"]
    target_label  = "instance"
  }

  // If the file sets no service name, the host without its port is the name.
  rule {
    source_labels = ["service_name", "__address__"]
    regex         = ";([^:]+)(?::\\d+)?"
    target_label  = "service_name"
  }

  // A file may disable a target: `"profiles": "off"`.
  rule {
    action        = "drop"
    source_labels = ["profiles"]
    regex         = "off"
  }
}

// Every 15 seconds, the collector scrapes all profile types of Go's net/http/pprof.
// A CPU profile covers 14 of the 15 seconds. Profiles of memory, block and mutex
// contain the change since the last scrape.
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

    // Only some programs serve these: wall-clock time (felixge/fgprof) and
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

// The server that receives the profiles. While the server is unreachable, profiles wait
// on disk, under --storage.path. ALLUVIUM_SERVER names another server.
pyroscope "write" "local" {
  endpoint {
    url = coalesce(sys::env("ALLUVIUM_SERVER"), "http://localhost:4040")
  }

  external_labels = {
    "collector" = constants.hostname
  }
}
