import { must } from '../kubectl.ts';
import { imageOf } from './programs.ts';

/** A pod that asks the agent of its node who it is, through the same volume that the chart's pods have. */
export interface Asking {
  readonly namespace: string;
  readonly name: string;
  /** It must exist. */
  readonly serviceAccount: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const socketFolder = '/run/spire/agent-sockets';

function podOf({ namespace, name, serviceAccount, labels = {} }: Asking): object {
  const fetch = ['api', 'fetch', 'x509', '-timeout', '20s'];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec: {
      restartPolicy: 'Never',
      serviceAccountName: serviceAccount,
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65_532,
        runAsGroup: 65_532,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'asking',
          image: imageOf('spire-agent'),
          imagePullPolicy: 'IfNotPresent',
          args: [...fetch, '-socketPath', `${socketFolder}/spire-agent.sock`],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [{ name: 'identity', mountPath: socketFolder, readOnly: true }],
        },
      ],
      volumes: [{ name: 'identity', csi: { driver: 'csi.spiffe.io', readOnly: true } }],
    },
  };
}

/** What the agent says to a pod: the SPIFFE ids of its SVIDs, or that there are none for it. */
export async function identitiesOf(asking: Asking): Promise<readonly string[]> {
  const there = ['-n', asking.namespace];
  await must('kubectl', [...there, 'apply', '-f', '-'], { input: JSON.stringify(podOf(asking)) });
  try {
    const ended = '--for=jsonpath={.status.containerStatuses[0].state.terminated.reason}';
    await must('kubectl', [...there, 'wait', ended, '--timeout=60s', `pod/${asking.name}`]);
    const said = await must('kubectl', [...there, 'logs', asking.name]);
    if (/PermissionDenied/.test(said)) return [];
    const ids = [...said.matchAll(/^SPIFFE ID:\s+(\S+)$/gm)].map(([, id = '']) => id);
    if (ids.length === 0) throw new Error(`the agent said: ${said}`);
    return ids;
  } finally {
    await must('kubectl', [...there, 'delete', 'pod', asking.name, '--grace-period=0', '--force']);
  }
}
