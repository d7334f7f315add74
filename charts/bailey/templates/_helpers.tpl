{{/* Refuses any other namespace: the rails name the operator's account exactly. */}}
{{- define "bailey.namespace" -}}
{{- if ne .Release.Namespace "bailey-system" -}}
{{- fail (printf "bailey must be installed in the namespace bailey-system, not %s: its policies exempt the account system:serviceaccount:bailey-system:bailey-operator by exact name; use `--namespace bailey-system --create-namespace`" .Release.Namespace) -}}
{{- end -}}
{{- include "bailey.kubernetes" . -}}
bailey-system
{{- end -}}

{{/* Refuses Kubernetes below 1.33. Not by kubeVersion in Chart.yaml: an API server or a helm that was built
without a version stamp says 0.0 or 1.20, and those pass. */}}
{{- define "bailey.kubernetes" -}}
{{- $minor := .Capabilities.KubeVersion.Minor | toString | regexFind "^[0-9]+" | int -}}
{{- if and (gt $minor 20) (lt $minor 33) -}}
{{- fail (printf "bailey needs Kubernetes 1.33 or later, not %s; upgrade the cluster first" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* Labels take a dict: root, and component (a role of the binary). */}}
{{- define "bailey.selectorLabels" -}}
app.kubernetes.io/name: bailey
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "bailey.labels" -}}
{{ include "bailey.selectorLabels" . }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The roles that run, as JSON: name to its own values. */}}
{{- define "bailey.components" -}}
{{- $components := dict "operator" (dict "replicas" .Values.replicas "resources" .Values.resources) -}}
{{- if .Values.auditor.enabled -}}
{{- $_ := set $components "auditor" (dict "replicas" .Values.auditor.replicas "resources" .Values.auditor.resources) -}}
{{- end -}}
{{- $components | toJson -}}
{{- end -}}

{{- define "bailey.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}
