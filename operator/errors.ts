import { AppError, type AppErrorOptions, type ErrorKind } from '#core/errors/errors.ts';

/** Error codes of the operator. */
const codeKinds = {
  AUTHORITIES_MISSING: 'unavailable',
  CACHE_NOT_SYNCED: 'unavailable',
  CACHE_STALE: 'unavailable',
  CHILD_TERMINATING: 'conflict',
  CONTROLLER_STOPPED: 'unavailable',
  FILE_UNREADABLE: 'not_found',
  INSTALLATION_CONFIG_INVALID: 'invalid',
  INVALID_ARGUMENTS: 'invalid',
  INVALID_CUSTOM_RESOURCE: 'invalid',
  INVALID_FILE: 'invalid',
  INVALID_NAME: 'invalid',
  INVALID_QUANTITY: 'invalid',
  INVALID_UID: 'invalid',
  KIND_NOT_WATCHED: 'internal',
  KUBECONFIG_INVALID: 'invalid',
  KUBECTL_FAILED: 'unavailable',
  KUBE_NOT_AN_OBJECT: 'bad_gateway',
  KUBE_NOT_A_LIST: 'bad_gateway',
  MEMBER_SILENT: 'timeout',
  NOT_IN_A_CLUSTER: 'invalid',
  NO_INSTALLATION: 'unavailable',
  RECONCILE_TIMEOUT: 'timeout',
  SCHEMA_NOT_STRUCTURAL: 'internal',
  SERVICE_ANSWER_UNREADABLE: 'bad_gateway',
  SERVICE_UNREACHABLE: 'unavailable',
  STUCK: 'unavailable',
} as const satisfies Record<string, ErrorKind>;

/** An error with one of these codes. */
export function operatorError(
  code: keyof typeof codeKinds,
  message: string,
  options?: AppErrorOptions,
): AppError {
  return new AppError(codeKinds[code], code, message, options);
}
