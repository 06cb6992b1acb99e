{{/* Whether this cluster is the control plane itself; then the release must be where the controllers' account is. */}}
{{- define "argosy.here" -}}
{{- if not .Values.controlPlane.kubeconfigSecret -}}
{{- if ne .Release.Namespace "kube-admiral-system" -}}
{{- fail "install into the namespace kube-admiral-system (-n kube-admiral-system --create-namespace), or set controlPlane.kubeconfigSecret to run the controllers of another control plane" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- define "argosy.account" -}}
{{- if include "argosy.here" . -}}argosy-controllers{{- else -}}{{ .Release.Name }}-controllers{{- end -}}
{{- end -}}

{{- define "argosy.selector" -}}
app.kubernetes.io/name: argosy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controllers
{{- end -}}

{{- define "argosy.labels" -}}
{{ include "argosy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
