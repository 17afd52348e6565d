import{C as e,E as t,T as n,a as r,g as i,l as a,m as o,o as s,p as c,y as l}from"./web-Cwx_X9yw.js";import{$ as u,Y as d,_t as f,f as p,n as m,vt as h}from"./index-DPHCg4yW.js";import{t as g}from"./loader-CEQ8zc5l.js";var _=`ALLUVIUM_TOKEN`,v=`/etc/alluvium/token`,y=[{title:`On the machine of the server: create a token that can only send profiles. It is shown once`,text:`alluvium token new my-service --role write`},{title:`On the machine that sends profiles: put the token into the environment variable ${_}, or into a file for a collector`,text:`read -rs ${_} && export ${_}
printf %s "$${_}" | sudo install -D -m 600 /dev/stdin ${v}`}],b=(e,t,n)=>`${n}

pyroscope.write "here" {
  endpoint {
    ${t?`url               = "${e}"
    bearer_token_file = "${v}"`:`url = "${e}"`}
  }
}`;function x(e,t){let n=e=>t?e:``,r=`curl${n(` -H "Authorization: Bearer $${_}"`)} --data-binary`;return[{key:`go`,label:`Go`,group:`Programs`,what:`The program pushes its own CPU, memory and goroutine profiles. A Go program that already serves /debug/pprof needs no change: see Scrape /debug/pprof.`,steps:[{title:`Add the library`,text:`go get github.com/grafana/pyroscope-go`},{title:`Start it at the beginning of main`,text:`pyroscope.Start(pyroscope.Config{
    ApplicationName: "my-service",
    ServerAddress:   "${e}",${n(`
    HTTPHeaders:     map[string]string{"Authorization": "Bearer " + os.Getenv("${_}")},`)}
})`}]},{key:`java`,label:`Java`,group:`Programs`,what:`A Java agent that the JVM loads with the program, without recompilation. It records CPU time, allocations and waits for locks with async-profiler.`,steps:[{title:`Start the program with the Pyroscope agent`,text:`export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${e}${n(`
export PYROSCOPE_AUTH_TOKEN="$${_}"   # sent as Authorization: Bearer`)}
export PYROSCOPE_FORMAT=jfr
java -javaagent:pyroscope.jar -jar my-service.jar`}]},{key:`python`,label:`Python`,group:`Programs`,what:`A sampling profiler inside the process.`,steps:[{title:`Install`,text:`pip install pyroscope-io`},{title:`Start it at the beginning of the program`,text:`${n(`import os
`)}import pyroscope

pyroscope.configure(
    application_name="my-service",
    server_address="${e}",${n(`
    http_headers={"Authorization": "Bearer " + os.environ["${_}"]},`)}
)`}]},{key:`node`,label:`Node.js`,group:`Programs`,what:`The CPU time and the heap of a Node.js process.`,steps:[{title:`Install`,text:`npm install @pyroscope/nodejs`},{title:`Start it at the beginning of the program`,text:`const Pyroscope = require('@pyroscope/nodejs');

Pyroscope.init({ appName: 'my-service', serverAddress: '${e}'${n(`,
    authToken: process.env.${_} /* sent as Authorization: Bearer */`)} });
Pyroscope.start();`}]},{key:`rust`,label:`Rust`,group:`Programs`,what:`A sampling profiler inside the process.`,steps:[{title:`Add the crates`,text:`cargo add pyroscope@0.5 pyroscope_pprofrs@0.2`},{title:`Start it at the beginning of main`,text:`let agent = pyroscope::PyroscopeAgent::builder("${e}", "my-service")
    .backend(pyroscope_pprofrs::pprof_backend(
        pyroscope_pprofrs::PprofConfig::new().sample_rate(100),
    ))${n(`
    .auth_token(std::env::var("${_}")?) // sent as Authorization: Bearer`)}
    .build()?;
let running = agent.start()?;`}]},{key:`ruby`,label:`Ruby`,group:`Programs`,what:`A sampling profiler inside the process.`,steps:[{title:`Add the gem`,text:`bundle add pyroscope`},{title:`Start it at the beginning of the program`,text:`require 'pyroscope'

Pyroscope.configure do |config|
  config.application_name = 'my-service'
  config.server_address = '${e}'${n(`
  # Sent as Authorization: Basic. With a token as the password, any user name works.
  config.basic_auth_username = 'token'
  config.basic_auth_password = ENV['${_}']`)}
end`}]},{key:`dotnet`,label:`.NET`,group:`Programs`,what:`A profiler that the runtime loads, without recompilation. It needs Linux on x86-64. The two .so libraries below are in the image pyroscope/pyroscope-dotnet.`,steps:[{title:`Start the program with these variables`,text:`export PYROSCOPE_APPLICATION_NAME=my-service
export PYROSCOPE_SERVER_ADDRESS=${e}${n(`
export PYROSCOPE_HTTP_HEADERS="{\\"Authorization\\": \\"Bearer $${_}\\"}"`)}
export PYROSCOPE_PROFILING_ENABLED=1
export CORECLR_ENABLE_PROFILING=1
export CORECLR_PROFILER={BD1A650D-AC5D-4896-B64F-D6FA25D6B26A}
export CORECLR_PROFILER_PATH=/dotnet/Pyroscope.Profiler.Native.so
export LD_PRELOAD=/dotnet/Pyroscope.Linux.ApiWrapper.x64.so
dotnet my-service.dll`}]},{key:`ebpf`,label:`Whole machine (eBPF)`,group:`Machines`,what:`The CPU time of every process on a Linux machine, without a change to any of them. Needs Linux 6.1 and root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.`,steps:[{title:`Write machine.river`,text:b(e,t,`discovery.process "all" { }

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
}`)},{title:`Run it`,text:`sudo alluvium run machine.river`}]},{key:`scrape`,label:`Scrape /debug/pprof`,group:`Machines`,what:`Scrapes programs that serve pprof over HTTP, such as Go programs, every 15 seconds.`,steps:[{title:`Write scrape.river`,text:b(e,t,`pyroscope.scrape "programs" {
  targets    = [{"__address__" = "localhost:9090", "service_name" = "my-service"}]
  forward_to = [pyroscope.write.here.receiver]
}`)},{title:`Run it, or add both blocks to a Grafana Alloy configuration`,text:`alluvium run scrape.river`}]},{key:`otel`,label:`OpenTelemetry Collector`,group:`Machines`,what:`Profiles that an OpenTelemetry Collector receives as OTLP, for example from the OpenTelemetry eBPF profiler.`,steps:[{title:`Add this to the configuration of the collector`,text:`exporters:
  otlphttp/profiles:
    endpoint: ${e}${n(`
    headers:
      Authorization: "Bearer \${env:${_}}"`)}
service:
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [otlphttp/profiles]`},{title:`Start the collector with the feature gate for profiles`,text:`otelcol --feature-gates=service.profilesSupport --config=collector.yaml`}]},{key:`files`,label:`Files`,group:`By hand`,what:`Existing profiles, of any age that the server accepts. To look at one without storing it, drop it on this page.`,steps:[{title:`pprof`,text:`alluvium upload cpu.pprof --label service_name=my-service --override-timestamp --url ${e}${n(`   # reads $${_}`)}`},{title:`The same with curl`,text:`${r} @cpu.pprof '${e}/ingest?name=my-service&format=pprof'`},{title:`Collapsed stacks`,text:`printf 'main;work 30\\nmain;idle 70\\n' | ${r} @- '${e}/ingest?name=my-service'`},{title:`perf, 99 samples per second`,text:`perf record -F 99 -g -- my-program
perf script | ${r} @- '${e}/ingest?name=my-program&sampleRate=99&format=perf_script'`}]}]}var S=c(`<section class=token aria-labelledby=token><h3 id=token>This server requires authentication</h3><p>Programs authenticate with a token, which this page does not show. Any token with the role <code>write</code> works. If the server has several tenants, <code>--tenant</code> in the first command selects one.</p><ol>`),C=c(`<p class=muted>Profiles appear under Services within a minute. If the server has several tenants, also send the header X-Scope-OrgID.`),w=c(`<main class=view id=main tabindex=-1><div class=bar><h1>Send profiles here</h1><span class=facts>to <b></b></span></div><div class="content send"><div class=ways role=tablist aria-label="Ways to send profiles"aria-orientation=vertical></div><section class=way id=way role=tabpanel tabindex=0><h2></h2><p></p><ol>`),T=c(`<div class=group-name role=presentation>`),E=c(`<button type=button role=tab aria-controls=way>`),D=c(`<li><h4>`),O=c(`<li><h3>`),k=[`Programs`,`Machines`,`By hand`];function A(){let{at:r,go:c}=m(p),_=u(location.origin,h),v=g(()=>!0,(e,t)=>f(t)),b=()=>v.data()===!0,A=x(_,!1),j=n(()=>{let e=x(_,b());return e.find(({key:e})=>e===r.way())??e[0]}),M,N=e=>c({way:e===A[0].key?``:e},{replace:!0}),P=e=>{let t=A.findIndex(({key:e})=>e===j().key),n={ArrowDown:t+1,ArrowRight:t+1,ArrowUp:t-1,ArrowLeft:t-1,Home:0,End:A.length-1}[e.key],r=n===void 0?void 0:A[(n+A.length)%A.length];r&&(e.preventDefault(),N(r.key),queueMicrotask(()=>M.querySelector(`[aria-selected="true"]`)?.focus()))};return(()=>{var n=w(),r=n.firstChild,c=r.firstChild.nextSibling.firstChild.nextSibling,u=r.nextSibling.firstChild,f=u.nextSibling,p=f.firstChild,m=p.nextSibling,h=m.nextSibling;s(c,_),u.$$keydown=P;var g=M;return typeof g==`function`?o(g,u):M=u,s(u,e(i,{each:k,children:n=>[(()=>{var e=T();return s(e,n),e})(),e(i,{get each(){return A.filter(e=>e.group===n)},children:({key:e,label:n})=>(()=>{var r=E();return r.$$click=()=>N(e),a(r,`id`,`way-${e}`),s(r,n),t(t=>{var n=j().key===e,i=j().key===e?0:-1;return n!==t.e&&a(r,`aria-selected`,t.e=n),i!==t.t&&a(r,`tabindex`,t.t=i),t},{e:void 0,t:void 0}),r})()})]})),s(p,()=>j().label),s(m,()=>j().what),s(f,e(l,{get when(){return b()},get children(){var t=S(),n=t.firstChild.nextSibling.nextSibling;return s(n,e(i,{each:y,children:({title:t,text:n})=>(()=>{var r=D(),i=r.firstChild;return s(i,t),s(r,e(d,{text:n}),null),r})()})),t}}),h),s(h,e(i,{get each(){return j().steps},children:({title:t,text:n})=>(()=>{var r=O(),i=r.firstChild;return s(i,t),s(r,e(d,{text:n}),null),r})()})),s(f,e(l,{get when(){return j().group!==`By hand`},get children(){return C()}}),null),t(()=>a(f,`aria-labelledby`,`way-${j().key}`)),n})()}r([`keydown`,`click`]);export{A as default};