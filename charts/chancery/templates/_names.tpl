{{/* Name of the installation: SPIFFE trust domain and issuer of tokens. */}}
{{- define "chancery.installation" -}}
{{- .Values.installation | default (printf "%s.chancery.local" .Release.Name) -}}
{{- end -}}

{{/* Labels that select the pods of one part: (dict "root" $ "name" "tenant") */}}
{{- define "chancery.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* Labels of every object: (dict "root" $ "name" "tenant") */}}
{{- define "chancery.labels" -}}
{{ include "chancery.selector" . }}
app.kubernetes.io/component: {{ .name }}
app.kubernetes.io/part-of: chancery
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{/* Labels of the pods of one part; they do not change with the version of the chart: (dict "root" $ "name" "tenant" "clientId" "service-tenant") */}}
{{- define "chancery.podLabels" -}}
{{ include "chancery.selector" . }}
app.kubernetes.io/component: {{ .name }}
app.kubernetes.io/part-of: chancery
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .clientId }}
chancery.dev/client-id: {{ . }}
{{- end }}
{{- end -}}

{{/* Image of one part: (dict "root" $ "name" "tenant"). PostgreSQL and NATS have separate tags, so that a release does not restart them. */}}
{{- define "chancery.image" -}}
{{- $image := .root.Values.image -}}
{{- $own := .root.Files.Get "files/image-tags.json" | fromJson -}}
{{ printf "%s/%s:%s" $image.registry .name (get $own .name | default $image.tag | default .root.Chart.AppVersion) }}
{{- end -}}

{{/* Names of the Secrets: existing ones, or those that the chart generates. */}}
{{- define "chancery.secret.admin" -}}{{ .Values.admin.existingSecret | default "chancery-admin" }}{{- end -}}
{{- define "chancery.secret.protectionKey" -}}{{ .Values.tenant.protectionKey.existingSecret | default "chancery-tenant-protection-key" }}{{- end -}}
{{- define "chancery.secret.keyEncryptionKey" -}}{{ .Values.wallet.keyEncryptionKey.existingSecret | default "chancery-wallet-kek" }}{{- end -}}
{{- define "chancery.secret.operationsKey" -}}{{ .Values.blueprint.operationsKey.existingSecret | default "chancery-blueprint-operations-key" }}{{- end -}}
{{- define "chancery.secret.nats" -}}{{ .Values.nats.existingSecret | default "chancery-nats" }}{{- end -}}
{{- define "chancery.secret.gatewayTls" -}}{{ .Values.ingress.tlsSecret | default "chancery-gateway-tls" }}{{- end -}}
{{/* (dict "root" $ "name" "tenant") */}}
{{- define "chancery.secret.database" -}}
{{- (index .root.Values.database .name).existingSecret | default (printf "chancery-database-%s" .name) -}}
{{- end -}}

{{/* ConfigMaps with the CA of a server; empty when there is none. */}}
{{- define "chancery.ca.nats" -}}{{ if .Values.nats.inChart.enabled }}chancery-ca{{ else }}{{ .Values.nats.caConfigMap }}{{ end }}{{- end -}}
{{- define "chancery.ca.database" -}}{{ if .Values.database.inChart.enabled }}chancery-ca{{ else }}{{ .Values.database.caConfigMap }}{{ end }}{{- end -}}

{{/* Public address of the gateway. */}}
{{- define "chancery.baseUrl" -}}
{{- if .Values.gateway.publicUrl -}}{{ .Values.gateway.publicUrl }}
{{- else if .Values.ingress.enabled -}}https://{{ .Values.ingress.host | default (first .Values.ingress.addresses) }}
{{- else -}}http://service-gateway.{{ .Release.Namespace }}.svc:8080
{{- end -}}
{{- end -}}

{{/* Whether the chart generates Secrets; "true" or empty. */}}
{{- define "chancery.generates" -}}
{{- if or .Values.secrets.generate .Values.database.inChart.enabled .Values.nats.inChart.enabled -}}true{{- end -}}
{{- end -}}
