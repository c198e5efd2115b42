{{/* Settings of a process with a database: (dict "root" $ "name" "tenant") */}}
{{- define "chancery.env.stores" -}}
- { name: CHANCERY_INSTALLATION, value: {{ include "chancery.installation" .root | quote }} }
- { name: CHANCERY_RATE_LIMIT_PROFILE, value: {{ .root.Values.rateLimitProfile }} }
- { name: CHANCERY_DATABASE_CONNECTIONS, value: {{ (index .root.Values .name).connections | quote }} }
{{ include "chancery.env.secret" (dict "name" "DATABASE_URL" "secret" (include "chancery.secret.database" .) "key" "url") }}
{{ include "chancery.env.secret" (dict "name" "NATS_URL" "secret" (include "chancery.secret.nats" .root) "key" .name) }}
{{- if include "chancery.ca.nats" .root }}
- { name: CHANCERY_NATS_CA_FILE, value: /etc/chancery/ca/nats/ca.crt }
{{- end }}
{{- end -}}

{{/* Address of the tenant service. */}}
{{- define "chancery.env.tenant" -}}
- { name: CHANCERY_TENANT_HTTPS, value: "service-tenant:7443" }
- { name: CHANCERY_TENANT_GRPC, value: "service-tenant:7000" }
- { name: CHANCERY_TENANT_MTLS, value: "service-tenant:8443" }
{{- end -}}

{{/* Files of a process with a database: the CAs of its servers. YAML of a list. */}}
{{- define "chancery.files.stores" -}}
{{- $files := list -}}
{{- with include "chancery.ca.database" . -}}
{{- $files = append $files (dict "name" "database-ca" "configMap" . "path" "/etc/chancery/ca/database") -}}
{{- end -}}
{{- with include "chancery.ca.nats" . -}}
{{- $files = append $files (dict "name" "nats-ca" "configMap" . "path" "/etc/chancery/ca/nats") -}}
{{- end -}}
{{- toYaml $files -}}
{{- end -}}

{{/* Waits until the PostgreSQL of the chart accepts connections; empty for an existing PostgreSQL. */}}
{{- define "chancery.init.database" -}}
{{- if .root.Values.database.inChart.enabled -}}
- name: wait-for-database
  image: {{ include "chancery.image" . }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [/usr/bin/node, -e, {{ .root.Files.Get "files/wait-for-database.js" | quote }}]
  securityContext: {{- include "chancery.containerSecurity" .root | nindent 4 }}
  resources: { requests: { cpu: 10m, memory: 48Mi }, limits: { memory: 96Mi } }
{{- end -}}
{{- end -}}
