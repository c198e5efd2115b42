import { setTimeout as pause } from 'node:timers/promises';
import { must, run } from '../kubectl.ts';
import { imageOf } from './programs.ts';

/** A pod that requests its identity from the agent of its node, through the same volume as the chart's pods. */
export interface WorkloadApiPod {
  readonly namespace: string;
  readonly name: string;
  /** It must exist. */
  readonly serviceAccount: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Retries for 15 s, because the controller manager registers a pod with a delay. */
  readonly isPatient?: boolean;
}

const socketFolder = '/run/spire/agent-sockets';
const socket = ['-socketPath', `${socketFolder}/spire-agent.sock`];

function podOf({ namespace, name, serviceAccount, labels = {} }: WorkloadApiPod): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec: {
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
          // the container keeps running with any answer
          args: ['api', 'watch', ...socket],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [{ name: 'identity', mountPath: socketFolder, readOnly: true }],
        },
      ],
      volumes: [{ name: 'identity', csi: { driver: 'csi.spiffe.io', readOnly: true } }],
    },
  };
}

/** Answer of the agent to a process of the pod. */
async function ask({ namespace, name }: WorkloadApiPod): Promise<string> {
  const command = ['/spire-agent', 'api', 'fetch', 'x509', '-timeout', '20s', ...socket];
  const { out, err } = await run('kubectl', ['-n', namespace, 'exec', name, '--', ...command]);
  return `${out}${err}`;
}

/** SPIFFE ids of a pod's SVIDs; empty when the agent has none for it. */
export async function identitiesOf(asking: WorkloadApiPod): Promise<readonly string[]> {
  const deadline = Date.now() + (asking.isPatient === true ? 15_000 : 0);
  const inNamespace = ['-n', asking.namespace];
  await must('kubectl', [...inNamespace, 'apply', '-f', '-'], { input: JSON.stringify(podOf(asking)) });
  try {
    await must(
      'kubectl',
      [...inNamespace, 'wait', '--for=condition=Ready', `pod/${asking.name}`, '--timeout=60s'],
      {
        timeoutMs: 70_000,
      },
    );
    for (;;) {
      const output = await ask(asking);
      const ids = [...output.matchAll(/^SPIFFE ID:\s+(\S+)$/gm)].map(([, id = '']) => id);
      if (ids.length > 0) return ids;
      if (!output.includes('PermissionDenied')) throw new Error(`the agent said: ${output}`);
      if (Date.now() >= deadline) return [];
      await pause(1_000);
    }
  } finally {
    await must('kubectl', [...inNamespace, 'delete', 'pod', asking.name, '--grace-period=0', '--force']);
  }
}
