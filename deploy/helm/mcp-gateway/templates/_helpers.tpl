{{- define "name" -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- end }}
{{- define "image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
{{- define "selector" -}}
app.kubernetes.io/name: {{ include "name" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- define "podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- define "containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
{{- define "volumes" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
    {{- range $variable, $from := . }}
      - secret:
          name: {{ $from.secret }}
          items:
            - {key: {{ $from.key | quote }}, path: {{ trimPrefix "GATEWAY_" $variable | lower }}}
    {{- end }}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 64Mi
{{- end }}
{{- define "mounts" -}}
- name: secrets
  mountPath: /run/secrets/gateway
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- end }}
{{- define "files" -}}
{{- range $variable, $from := . }}
- name: {{ $variable }}_FILE
  value: /run/secrets/gateway/{{ trimPrefix "GATEWAY_" $variable | lower }}
{{- end }}
{{- end }}
{{- define "dns" -}}
- to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
      podSelector:
        matchLabels:
          k8s-app: kube-dns
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
- to:
    - podSelector:
        matchLabels:
          app.kubernetes.io/name: postgresql
  ports:
    - {protocol: TCP, port: 5432}
{{- end }}
{{- define "paths" -}}
{{- list (dict "path" "/t/" "type" "Prefix") (dict "path" "/.well-known/" "type" "Prefix") (dict "path" "/docs/errors" "type" "Exact") (dict "path" "/readyz" "type" "Exact") | toJson -}}
{{- end }}
{{- define "secretsChecksum" -}}
{{- $root := . -}}{{- $found := dict -}}
{{- range $variable, $from := .Values.secrets -}}
{{- $_ := set $found $from.secret (dig "data" dict (lookup "v1" "Secret" $root.Release.Namespace $from.secret | default dict)) -}}
{{- end -}}
{{ $found | toJson | sha256sum }}
{{- end }}
