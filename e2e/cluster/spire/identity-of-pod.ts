import { setTimeout as pause } from 'node:timers/promises';
import { must, run } from '../kubectl.ts';
import { imageOf } from './programs.ts';

/** A pod that asks the agent of its node who it is, through the same volume that the chart's pods have. */
export interface Asking {
  readonly namespace: string;
  readonly name: string;
  /** It must exist. */
  readonly serviceAccount: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Asks for 15 s until there is an identity: the controller manager registers a pod once it sees it. */
  readonly isPatient?: boolean;
}

const socketFolder = '/run/spire/agent-sockets';
const socket = ['-socketPath', `${socketFolder}/spire-agent.sock`];

function podOf({ namespace, name, serviceAccount, labels = {} }: Asking): object {
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
          // it stays, whatever it hears
          args: ['api', 'watch', ...socket],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [{ name: 'identity', mountPath: socketFolder, readOnly: true }],
        },
      ],
      volumes: [{ name: 'identity', csi: { driver: 'csi.spiffe.io', readOnly: true } }],
    },
  };
}

/** What the agent says to a process of the pod. */
async function ask({ namespace, name }: Asking): Promise<string> {
  const command = ['/spire-agent', 'api', 'fetch', 'x509', '-timeout', '20s', ...socket];
  const { out, err } = await run('kubectl', ['-n', namespace, 'exec', name, '--', ...command]);
  return `${out}${err}`;
}

/** What the agent says to a pod: the SPIFFE ids of its SVIDs, none when it has none for it. */
export async function identitiesOf(asking: Asking): Promise<readonly string[]> {
  const deadline = Date.now() + (asking.isPatient === true ? 15_000 : 0);
  const there = ['-n', asking.namespace];
  await must('kubectl', [...there, 'apply', '-f', '-'], { input: JSON.stringify(podOf(asking)) });
  try {
    await must(
      'kubectl',
      [...there, 'wait', '--for=condition=Ready', `pod/${asking.name}`, '--timeout=60s'],
      {
        timeoutMs: 70_000,
      },
    );
    for (;;) {
      const said = await ask(asking);
      const ids = [...said.matchAll(/^SPIFFE ID:\s+(\S+)$/gm)].map(([, id = '']) => id);
      if (ids.length > 0) return ids;
      if (!said.includes('PermissionDenied')) throw new Error(`the agent said: ${said}`);
      if (Date.now() >= deadline) return [];
      await pause(1_000);
    }
  } finally {
    await must('kubectl', [...there, 'delete', 'pod', asking.name, '--grace-period=0', '--force']);
  }
}
