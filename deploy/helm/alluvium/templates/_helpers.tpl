{{/* Names and labels that the templates share. */}}

{{/*
Kubernetes allows 63 characters in the name of a Service and in a label. The longest name of a Service is this name and
"-collector-members". The longest label is the revision of the server's pods: this name, "-server" and 11 more characters.
*/}}
{{- define "alluvium.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that select the objects of a component: (list . "server"). */}}
{{- define "alluvium.selector" -}}
app.kubernetes.io/name: alluvium
app.kubernetes.io/instance: {{ (first .).Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "alluvium.labels" -}}
{{ include "alluvium.selector" . }}
app.kubernetes.io/version: {{ (first .).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (first .).Release.Service }}
{{- end -}}

{{- define "alluvium.image" -}}
{{ (last .).image.repository }}:{{ (last .).image.tag | default (first .).Chart.AppVersion }}
{{- end -}}

{{/* Settings that choose the nodes of a pod. */}}
{{- define "alluvium.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The collector's configuration: the targets, and the server that receives the profiles. */}}
{{- define "alluvium.collector" -}}
{{- $onNode := eq .Values.collector.kind "DaemonSet" -}}
logging {
	level  = "info"
	format = "logfmt"
}
{{- if .Values.collector.pods.enabled }}

// Pods{{ if $onNode }} of this node{{ end }} whose annotations ask for profiles.
discovery.profiles "pods" {
	{{- if $onNode }}
	selectors {
		role  = "pod"
		field = "spec.nodeName=" + sys.env("NODE_NAME")
	}
	{{- end }}
	{{- with .Values.collector.pods.namespaces }}
	{{- if $onNode }}{{ println "" }}{{ end }}
	namespaces {
		names = {{ toJson . | replace "," ", " }}
	}
	{{- end }}
{{- if not (or $onNode .Values.collector.pods.namespaces) }} }{{ else }}
}
{{- end }}

pyroscope.scrape "pods" {
	targets    = discovery.profiles.pods.targets
	forward_to = [pyroscope.write.server.receiver]
	{{- if .Values.collector.clustering.enabled }}

	clustering {
		enabled = true
	}
	{{- end }}
}
{{- end }}
{{- if .Values.collector.ebpf.enabled }}

// Profiles the CPU of every container of this node.
discovery.kubernetes "node" {
	role = "pod"

	selectors {
		role  = "pod"
		field = "spec.nodeName=" + sys.env("NODE_NAME")
	}
}

discovery.relabel "node" {
	targets = discovery.kubernetes.node.targets

	rule {
		source_labels = ["__meta_kubernetes_namespace"]
		target_label  = "namespace"
	}

	rule {
		source_labels = ["__meta_kubernetes_pod_name"]
		target_label  = "pod"
	}

	rule {
		source_labels = ["__meta_kubernetes_pod_container_name"]
		target_label  = "container"
	}

	rule {
		source_labels = ["__meta_kubernetes_pod_node_name"]
		target_label  = "node"
	}
}

pyroscope.ebpf "node" {
	targets    = discovery.relabel.node.output
	forward_to = [pyroscope.write.server.receiver]
}
{{- end }}

// Profiles wait on disk while the server is unreachable.
pyroscope.write "server" {
	endpoint {
		{{- if .Values.collector.tokenSecret }}
		url          = sys.env("ALLUVIUM_SERVER")
		bearer_token = sys.env("ALLUVIUM_TOKEN")
		{{- else }}
		url = sys.env("ALLUVIUM_SERVER")
		{{- end }}

		queue {
			max_bytes = {{ .Values.collector.queue | quote }}
		}
	}
}
{{- with .Values.collector.extraConfig }}

{{ . | trim }}
{{- end }}
{{ end -}}
