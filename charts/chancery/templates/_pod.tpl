{{/* Security context of every pod (pod security level restricted). */}}
{{- define "chancery.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "chancery.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Settings of every process. */}}
{{- define "chancery.env.common" -}}
- { name: CHANCERY_LOG_LEVEL, value: {{ .Values.logLevel | quote }} }
{{- with .Values.tracing.endpoint }}
- { name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }} }
{{- end }}
{{- end -}}

{{/* Settings of the source of identity. */}}
{{- define "chancery.env.identity" -}}
{{- if eq .Values.identity.provider "spire" -}}
- { name: SPIFFE_ENDPOINT_SOCKET, value: {{ printf "unix:/run/spire/agent-sockets/%s" .Values.identity.spire.socketFile | quote }} }
{{- else -}}
- { name: CHANCERY_IDENTITY_ISSUER, value: {{ include "chancery.issuerUrl" . | quote }} }
{{- end }}
{{- end -}}

{{- define "chancery.issuerUrl" -}}https://svid-issuer.{{ .Release.Namespace }}.svc:8443{{- end -}}
{{- define "chancery.issuerAudience" -}}spiffe://{{ include "chancery.installation" . }}/service/svid-issuer{{- end -}}

{{/* Volume and mount of the source of identity. */}}
{{- define "chancery.volume.identity" -}}
- name: identity
{{- if eq .Values.identity.provider "spire" }}
  csi: { driver: {{ .Values.identity.spire.csiDriver }}, readOnly: true }
{{- else }}
  projected:
    sources:
      - serviceAccountToken: { audience: {{ include "chancery.issuerAudience" . | quote }}, expirationSeconds: 3600, path: token }
      - configMap: { name: chancery-identity-ca, items: [{ key: ca.crt, path: ca.crt }] }
{{- end }}
{{- end -}}

{{- define "chancery.mount.identity" -}}
{{- $path := ternary "/run/spire/agent-sockets" "/var/run/chancery/identity" (eq .Values.identity.provider "spire") -}}
- { name: identity, mountPath: {{ $path }}, readOnly: true }
{{- end -}}

{{/* One file directory of a pod: (dict "name" "kek" "secret" "x" "path" "/etc/chancery/kek") or with "configMap" */}}
{{- define "chancery.volume.file" -}}
- name: {{ .name }}
{{- if .secret }}
  secret: { secretName: {{ .secret }}, defaultMode: 0440 }
{{- else }}
  configMap: { name: {{ .configMap }} }
{{- end }}
{{- end -}}

{{/* A setting that is a secret: (dict "name" "DATABASE_URL" "secret" "x" "key" "url") */}}
{{- define "chancery.env.secret" -}}
- { name: {{ .name }}, valueFrom: { secretKeyRef: { name: {{ .secret }}, key: {{ .key }} } } }
{{- end -}}

{{/* Settings given by name in the values of a part. */}}
{{- define "chancery.env.settings" -}}
{{- range $name, $value := . }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end -}}

{{/* Scheduling of a pod: the values of a part; spread over hosts by default. */}}
{{- define "chancery.placement" -}}
{{- $values := .values -}}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: { matchLabels: {{ include "chancery.selector" . | fromYaml | toJson }} }
    matchLabelKeys: [pod-template-hash]
{{- end -}}
