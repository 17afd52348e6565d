import{S as e,T as t,a as n,f as r,h as i,l as a,o,p as s,v as c,w as l}from"./web-CVfAQBDf.js";import{Z as u,f as d,ft as f,n as p,q as m}from"./index-Cc0vCo3k.js";var h=(e,t)=>`${t}

pyroscope.write "here" {
  endpoint {
    url = "${e}"
  }
}`,g=e=>[{key:`go`,label:`Go`,group:`Programs`,what:`The program pushes its own CPU, memory and goroutine profiles. A Go program that already serves /debug/pprof needs no change: see Scrape.`,steps:[{title:`Add the library`,text:`go get github.com/grafana/pyroscope-go`},{title:`Start it first thing in main`,text:`pyroscope.Start(pyroscope.Config{
    ApplicationName: "my-service",
    ServerAddress:   "${e}",
})`}]},{key:`java`,label:`Java`,group:`Programs`,what:`An agent beside the program: nothing is compiled anew. It records CPU time, allocations and waits for locks by async-profiler.`,steps:[{title:`Start the program with the agent of Pyroscope`,text:`export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${e}
export PYROSCOPE_FORMAT=jfr
java -javaagent:pyroscope.jar -jar my-service.jar`}]},{key:`python`,label:`Python`,group:`Programs`,what:`A sampler inside of the process.`,steps:[{title:`Install`,text:`pip install pyroscope-io`},{title:`Start it first thing`,text:`import pyroscope

pyroscope.configure(
    application_name="my-service",
    server_address="${e}",
)`}]},{key:`node`,label:`Node.js`,group:`Programs`,what:`CPU time and the heap of a process of Node.js.`,steps:[{title:`Install`,text:`npm install @pyroscope/nodejs`},{title:`Start it first thing`,text:`const Pyroscope = require('@pyroscope/nodejs');

Pyroscope.init({ appName: 'my-service', serverAddress: '${e}' });
Pyroscope.start();`}]},{key:`rust`,label:`Rust`,group:`Programs`,what:`A sampler inside of the process.`,steps:[{title:`Add the crates`,text:`cargo add pyroscope@0.5 pyroscope_pprofrs@0.2`},{title:`Start it first thing in main`,text:`let agent = pyroscope::PyroscopeAgent::builder("${e}", "my-service")
    .backend(pyroscope_pprofrs::pprof_backend(
        pyroscope_pprofrs::PprofConfig::new().sample_rate(100),
    ))
    .build()?;
let running = agent.start()?;`}]},{key:`ruby`,label:`Ruby`,group:`Programs`,what:`A sampler inside of the process.`,steps:[{title:`Add the gem`,text:`bundle add pyroscope`},{title:`Start it first thing`,text:`require 'pyroscope'

Pyroscope.configure do |config|
  config.application_name = 'my-service'
  config.server_address = '${e}'
end`}]},{key:`dotnet`,label:`.NET`,group:`Programs`,what:`A profiler that the runtime loads: nothing is compiled anew. Linux, x86-64; the two libraries are in the image pyroscope/pyroscope-dotnet.`,steps:[{title:`Start the program with these variables`,text:`export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${e}
export PYROSCOPE_PROFILING_ENABLED=1
export CORECLR_ENABLE_PROFILING=1
export CORECLR_PROFILER={BD1A650D-AC5D-4896-B64F-D6FA25D6B26A}
export CORECLR_PROFILER_PATH=/dotnet/Pyroscope.Profiler.Native.so
export LD_PRELOAD=/dotnet/Pyroscope.Linux.ApiWrapper.x64.so
dotnet my-service.dll`}]},{key:`ebpf`,label:`Whole machine (eBPF)`,group:`Machines`,what:`The CPU of every process of a Linux machine, without touching any of them. Needs Linux 6.1 and root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.`,steps:[{title:`Write machine.river`,text:h(e,`discovery.process "all" { }

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
}`)},{title:`Run it`,text:`sudo alluvium run machine.river`}]},{key:`scrape`,label:`Scrape /debug/pprof`,group:`Machines`,what:`Programs that serve pprof over HTTP, as those in Go can, are asked every 15 seconds.`,steps:[{title:`Write scrape.river`,text:h(e,`pyroscope.scrape "programs" {
  targets    = [{"__address__" = "localhost:9090", "service_name" = "my-service"}]
  forward_to = [pyroscope.write.here.receiver]
}`)},{title:`Run it, or put both blocks into a configuration of Grafana Alloy`,text:`alluvium run scrape.river`}]},{key:`otel`,label:`OpenTelemetry Collector`,group:`Machines`,what:`What a collector receives as OTLP, and what the eBPF profiler of OpenTelemetry sends to it.`,steps:[{title:`Into the configuration of the collector`,text:`exporters:
  otlphttp/profiles:
    endpoint: ${e}
service:
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [otlphttp/profiles]`},{title:`Pipelines of profiles are behind a feature gate`,text:`otelcol --feature-gates=service.profilesSupport --config=collector.yaml`}]},{key:`files`,label:`Files`,group:`By hand`,what:`Profiles that are there already, of any age that the server takes. To look at one without storing it, drop it on this page.`,steps:[{title:`pprof`,text:`alluvium upload cpu.pprof --label service_name=my-service --override-timestamp --url ${e}`},{title:`The same without our program`,text:`curl --data-binary @cpu.pprof '${e}/ingest?name=my-service&format=pprof'`},{title:`Collapsed stacks`,text:`printf 'main;work 30\\nmain;idle 70\\n' | curl --data-binary @- '${e}/ingest?name=my-service'`},{title:`perf, 99 times a second`,text:`perf record -F 99 -g -- my-program
perf script | curl --data-binary @- '${e}/ingest?name=my-program&sampleRate=99&format=perf_script'`}]}],_=r(`<p class=muted>What arrives shows up under Services within a minute. Where a server has several tenants, send the header X-Scope-OrgID, too.`),v=r(`<main class=view id=main tabindex=-1><div class=bar><h1>Send profiles here</h1><span class=facts>to <b></b></span></div><div class="content send"><div class=ways role=tablist aria-label="Ways to send"aria-orientation=vertical></div><section class=way id=way role=tabpanel tabindex=0><h2></h2><p></p><ol>`),y=r(`<div class=group-name role=presentation>`),b=r(`<button type=button role=tab aria-controls=way>`),x=r(`<li><h3>`),S=[`Programs`,`Machines`,`By hand`];function C(){let{at:n,go:r}=p(d),h=u(location.origin,f),C=g(h),w=l(()=>C.find(({key:e})=>e===n.way())??C[0]),T,E=e=>r({way:e===C[0].key?``:e},{replace:!0}),D=e=>{let t=C.indexOf(w()),n={ArrowDown:t+1,ArrowRight:t+1,ArrowUp:t-1,ArrowLeft:t-1,Home:0,End:C.length-1}[e.key],r=n===void 0?void 0:C[(n+C.length)%C.length];r&&(e.preventDefault(),E(r.key),queueMicrotask(()=>T.querySelector(`[aria-selected="true"]`)?.focus()))};return(()=>{var n=v(),r=n.firstChild,l=r.firstChild.nextSibling.firstChild.nextSibling,u=r.nextSibling.firstChild,d=u.nextSibling,f=d.firstChild,p=f.nextSibling,g=p.nextSibling;o(l,h),u.$$keydown=D;var O=T;return typeof O==`function`?s(O,u):T=u,o(u,e(i,{each:S,children:n=>[(()=>{var e=y();return o(e,n),e})(),e(i,{get each(){return C.filter(e=>e.group===n)},children:({key:e,label:n})=>(()=>{var r=b();return r.$$click=()=>E(e),a(r,`id`,`way-${e}`),o(r,n),t(t=>{var n=w().key===e,i=w().key===e?0:-1;return n!==t.e&&a(r,`aria-selected`,t.e=n),i!==t.t&&a(r,`tabindex`,t.t=i),t},{e:void 0,t:void 0}),r})()})]})),o(f,()=>w().label),o(p,()=>w().what),o(g,e(i,{get each(){return w().steps},children:({title:t,text:n})=>(()=>{var r=x(),i=r.firstChild;return o(i,t),o(r,e(m,{text:n}),null),r})()})),o(d,e(c,{get when(){return w().group!==`By hand`},get children(){return _()}}),null),t(()=>a(d,`aria-labelledby`,`way-${w().key}`)),n})()}n([`keydown`,`click`]);export{C as default};