{{/*
One process of the installation as ServiceAccount, Service, Deployment, PodDisruptionBudget and HorizontalPodAutoscaler.
  root      the chart's context
  name      image and label, as in "tenant"
  clientId  name of every object, and of the process's identity
  values    the values of the part
  ports     [{name, port}] beside ops 9090
  env       YAML of a list
  files     [{name, secret or configMap, path}], mounted read-only
  apiToken  true for a process that calls the API server
  identity  false for a process without an SVID of its own
  init      YAML of a list of init containers
  annotations of the pod; a change starts a rollout
*/}}
{{- define "chancery.workload" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $identity := ne (toString .identity) "false" -}}
{{- $autoscaling := $values.autoscaling | default (dict "enabled" false) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .clientId }}
  labels: {{- include "chancery.labels" . | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .clientId }}
  labels: {{- include "chancery.labels" . | nindent 4 }}
spec:
  selector: {{- include "chancery.selector" . | nindent 4 }}
  ports:
    {{- range .ports }}
    - { name: {{ .name }}, port: {{ .port }}, targetPort: {{ .name }}, protocol: TCP }
    {{- end }}
    - { name: ops, port: 9090, targetPort: ops, protocol: TCP }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .clientId }}
  labels: {{- include "chancery.labels" . | nindent 4 }}
spec:
  {{- if not $autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  selector: { matchLabels: {{ include "chancery.selector" . | fromYaml | toJson }} }
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  template:
    metadata:
      labels: {{- include "chancery.podLabels" . | nindent 8 }}
      {{- with mergeOverwrite (dict) (.annotations | default dict) ($values.podAnnotations | default dict) }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .clientId }}
      automountServiceAccountToken: {{ eq (toString .apiToken) "true" }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: 40
      securityContext: {{- include "chancery.podSecurity" $root | nindent 8 }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets: {{- range . }}{{ printf "\n- name: %s" . | nindent 8 }}{{ end }}
      {{- end }}
      {{- include "chancery.placement" . | nindent 6 }}
      {{- with .init }}
      initContainers: {{- . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ include "chancery.image" . }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          securityContext: {{- include "chancery.containerSecurity" $root | nindent 12 }}
          ports:
            {{- range .ports }}
            - { name: {{ .name }}, containerPort: {{ .port }}, protocol: TCP }
            {{- end }}
            - { name: ops, containerPort: 9090, protocol: TCP }
          env:
            {{- include "chancery.env.common" $root | nindent 12 }}
            {{- if $identity }}
            {{- include "chancery.env.identity" $root | nindent 12 }}
            {{- end }}
            {{- with .env }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with $values.settings }}
            {{- include "chancery.env.settings" . | trim | nindent 12 }}
            {{- end }}
          {{- with $values.resources }}
          resources: {{- toYaml . | nindent 12 }}
          {{- end }}
          startupProbe:
            httpGet: { path: /alive, port: ops }
            periodSeconds: 1
            failureThreshold: 120
          livenessProbe:
            httpGet: { path: /alive, port: ops }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            httpGet: { path: /ready, port: ops }
            periodSeconds: 2
            timeoutSeconds: 5
            failureThreshold: 3
          lifecycle:
            # time for callers to learn that this pod accepts no new requests
            preStop: { sleep: { seconds: 5 } }
          volumeMounts:
            {{- if $identity }}
            {{- include "chancery.mount.identity" $root | nindent 12 }}
            {{- end }}
            {{- range .files }}
            - { name: {{ .name }}, mountPath: {{ .path }}, readOnly: true }
            {{- end }}
      volumes:
        {{- if $identity }}
        {{- include "chancery.volume.identity" $root | nindent 8 }}
        {{- end }}
        {{- range .files }}
        {{- include "chancery.volume.file" . | nindent 8 }}
        {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .clientId }}
  labels: {{- include "chancery.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector: { matchLabels: {{ include "chancery.selector" . | fromYaml | toJson }} }
{{- if $autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .clientId }}
  labels: {{- include "chancery.labels" . | nindent 4 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ .clientId }} }
  minReplicas: {{ $autoscaling.minReplicas }}
  maxReplicas: {{ $autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ $autoscaling.targetCpuPercent }} }
{{- end }}
{{- end -}}
