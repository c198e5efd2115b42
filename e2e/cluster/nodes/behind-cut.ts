import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { connectWorkload } from '#kit/workload/workload.ts';
import { forward } from '../forward.ts';
import { installation, namespace } from '../installed.ts';
import { apply, kubectl } from '../kubectl.ts';
import type { Ledger } from '../ledger-under-load.ts';
import { imageOf, thisVersion } from '../versions.ts';

const health = z.object({
  status: z.string(),
  checks: z.array(z.object({ name: z.string(), status: z.string(), error: z.string().optional() })),
});
const validation = z.object({
  registers: z.array(
    z.object({
      registerId: z.string(),
      status: z.string(),
      lastDocketNumber: z.number(),
      operational: z.number(),
      quorumAvailable: z.boolean(),
      members: z.array(z.object({ validatorId: z.string(), reachable: z.boolean() })),
    }),
  ),
});
const line = z.object({ atMs: z.number(), status: z.number() });
const healthLine = line.extend({ path: z.literal('/health'), body: health });
const validationLine = line.extend({
  path: z.literal('/api/admin/validation/status'),
  body: validation,
});
const reportLine = z.discriminatedUnion('path', [healthLine, validationLine]);

/** A health report of a member, with its time. */
export type HealthReport = z.output<typeof healthLine>;
export type ValidationReport = z.output<typeof validationLine>;

/** A pod on the node of a member that queries it continuously; its log is read when the node is reachable. */
export interface NodeProbe {
  readonly health: () => Promise<readonly HealthReport[]>;
  readonly validation: () => Promise<readonly ValidationReport[]>;
  stop(): Promise<void>;
}

/** Queries the public health, and the validation status as administrator with an identity of the gateway. */
const script = `
const { once } = require('node:events');
const { get: plain } = require('node:http');
const { get: secure } = require('node:https');
const { HOST: host, TOKEN: token, CERT: cert, KEY: key, CA: ca } = process.env;
const ask = async (get, options) => {
  const signal = AbortSignal.timeout(20000);
  const [answer] = await once(get({ host, agent: false, signal, ...options }), 'response');
  let text = '';
  for await (const part of answer) text += part;
  return { status: answer.statusCode, body: JSON.parse(text) };
};
const keep = async (get, options) => {
  for (;;) {
    const { path } = options;
    const answer = await ask(get, options).catch((error) => ({ status: 0, body: String(error) }));
    console.log(JSON.stringify({ atMs: Date.now(), path, ...answer }));
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
};
keep(plain, { port: 9090, path: '/health' });
keep(secure, {
  port: 7443, path: '/api/admin/validation/status', cert, key, ca,
  checkServerIdentity: () => undefined, headers: { authorization: 'Bearer ' + token },
});
`;

/** Starts a probe on the node of a member, in the host network; resolves when it runs. */
export async function startNodeProbe(member: string, node: string, { root }: Ledger): Promise<NodeProbe> {
  const name = `listener-${member}`;
  const { key, cert, ca } = await gatewayIdentity();
  const host = await kubectl('-n', namespace, 'get', 'pod', member, '-o', 'jsonpath={.status.podIP}');
  const env = { HOST: host, TOKEN: root, CERT: cert, KEY: key, CA: ca };
  await apply('default', podOf(name, node, env));
  await kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s');
  const all = async () => {
    const lines = (await kubectl('logs', name)).split('\n').filter((each) => each !== '');
    return lines.flatMap((each) => reportLine.safeParse(JSON.parse(each)).data ?? []);
  };
  return {
    health: async () => (await all()).filter((each) => each.path === '/health'),
    validation: async () => (await all()).filter((each) => each.path === '/api/admin/validation/status'),
    stop: async () => void (await kubectl('delete', 'pod', name, '--grace-period=0', '--force')),
  };
}

function podOf(name: string, node: string, env: Readonly<Record<string, string>>): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      nodeName: node,
      hostNetwork: true,
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'listener',
          image: imageOf('gateway', thisVersion),
          imagePullPolicy: 'IfNotPresent',
          command: ['/usr/bin/node', '-e', script],
          env: Object.entries(env).map(([variable, value]) => ({ name: variable, value })),
        },
      ],
    },
  };
}

/** Requests an identity for a pod of the gateway. */
async function gatewayIdentity() {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-listener-'));
  const [tokenFile, caFile] = [join(folder, 'token'), join(folder, 'ca.crt')];
  const door = await forward(namespace, 'svid-issuer', 8443);
  try {
    const audience = `spiffe://${installation}/service/svid-issuer`;
    const inNamespace = ['-n', namespace];
    const token = await kubectl('create', 'token', 'service-gateway', ...inNamespace, '--audience', audience);
    writeFileSync(tokenFile, token.trim());
    const path = 'jsonpath={.data.ca\\.crt}';
    writeFileSync(
      caFile,
      await kubectl(...inNamespace, 'get', 'configmap', 'chancery-identity-ca', '-o', path),
    );
    const issuer = { url: `https://${door.address}`, installation, tokenFile, caFile };
    const log = createLogger({ service: 'test', level: 'silent' });
    const workload = await connectWorkload({ issuer, log, clock: systemClock() });
    const svid = workload.current();
    workload.stop();
    return svid;
  } finally {
    await door.stop();
    rmSync(folder, { recursive: true });
  }
}
