import { readdirSync } from 'node:fs';
import { createSteps, duration, explain } from '../../demo/steps.ts';
import { type Api, createApi } from '../../harness/api.ts';
import { checkEvidence, collectEvidence } from '../../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  submitThroughRegister,
  waitCount,
  waitOnline,
} from '../../harness/journey.ts';
import { inParallel } from '../../harness/wait.ts';
import { charts, install, installKinds, readSecret } from '../chart.ts';
import { report } from '../diagnosis.ts';
import { forward } from '../forward.ts';
import { setup } from '../images.setup.ts';
import { kubectl, must } from '../kubectl.ts';

const release = { name: 'acme', namespace: process.env['NAMESPACE'] ?? 'acme' };
const { namespace } = release;
const transactions = 50;
const genesis = 1;

const write = (text: string): void => void process.stdout.write(text);
const steps = createSteps(write);
const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const quote = (text: string): string =>
  text
    .split('\n')
    .map((line) => `      ${line}`.trimEnd())
    .join('\n')
    .trimEnd();

/** Prints the cluster that will be changed. */
async function confirmCluster(): Promise<void> {
  const server = await kubectl('config', 'view', '--minify', '-o', 'jsonpath={.clusters[0].cluster.server}');
  write(`Chancery on the cluster ${server}, in namespace ${namespace}\n\n`);
}

async function bringUp(): Promise<void> {
  const { LOAD } = process.env;
  if (LOAD) {
    await steps.run(`import the images: ${LOAD}`, async () => {
      await setup();
      const count = readdirSync('dist/images').filter((name) => name.endsWith('.tar')).length;
      return [`${count} archives`, undefined];
    });
  }
  await steps.run('helm install chancery-crds charts/chancery-crds', async () => {
    await installKinds();
    return ['three kinds, four admission policies', undefined];
  });
  await steps.run(`helm install acme charts/chancery -n ${namespace} -f values-demo.yaml`, async () => {
    await install(release);
    const pods = await look('get', 'pods', '--field-selector=status.phase=Running', '-o', 'name');
    return [`${pods.trim().split('\n').length} pods ready`, undefined];
  });
  write(`${quote(await look('get', 'pods'))}\n`);
  await steps.run('kubectl apply -f charts/chancery/samples, wait for Ready', async () => {
    await look('apply', '-f', charts('chancery', 'samples'));
    const resources = ['tenant/acme', 'validatorset/main', 'register/invoices'];
    const args = ['wait', '-n', namespace, '--for=condition=Ready', '--timeout=150s', ...resources];
    await must('kubectl', args, { timeoutMs: 160_000 });
    return ['a tenant, four validators, a register', undefined];
  });
  write(`${quote(await look('get', 'chancery'))}\n`);
}

async function showFeatures(api: Api): Promise<void> {
  const password = await readSecret(namespace, 'chancery-admin', 'password');
  const token = await steps.run('sign in as the administrator', async () => {
    const form = { grant_type: 'password', username: 'admin@example.com', password };
    const answer = await api.expect(200, 'POST', '/api/service-auth/token', { form });
    const { access_token: got, expires_in: seconds } = answer.body as {
      access_token: string;
      expires_in: number;
    };
    return [`access token for ${seconds} s`, got];
  });
  const owner = await createWallet(api, token, 'ED25519');
  const registerId = await steps.run('make a register over REST, watch its genesis seal', async () => {
    const id = await createRegister(api, token, 'Tour', owner);
    await waitOnline(api, token, id);
    return [`register ${id}`, id];
  });
  const send = async (from: number): Promise<void> => {
    const numbers = Array.from({ length: transactions }, (_, n) => from + n);
    await inParallel(numbers, 8, (n) =>
      submitThroughRegister(api, token, { registerId, sender: owner.walletAddress, payload: { n } }),
    );
  };
  await steps.run(`${transactions} transactions, sealed by the set's validators`, async () => {
    await send(0);
    await waitCount(api, token, registerId, genesis + transactions);
    return ['confirmed', undefined];
  });
  await steps.run(`delete the pod of a validator, ${transactions} more transactions meanwhile`, async () => {
    await look('delete', 'pod', 'main-2', '--wait=false');
    await send(transactions);
    await waitCount(api, token, registerId, genesis + 2 * transactions);
    return ['sealed by the other three', undefined];
  });
  await steps.run('verify every docket, record and proof offline', async () => {
    const evidence = await collectEvidence(api, token, registerId);
    return [`${evidence.dockets.length} dockets, head ${checkEvidence(evidence).slice(0, 16)}…`, undefined];
  });
  await steps.run('wait until the validator is back', async () => {
    const args = ['wait', '-n', namespace, '--for=condition=Ready', '--timeout=60s', 'validatorset/main'];
    await must('kubectl', args, { timeoutMs: 70_000 });
    return ['four of four', undefined];
  });
  write(`${quote(await look('get', 'vset', '-o', 'wide'))}\n`);
}

const next = `
Try next, all with -n ${namespace}:
  kubectl get chancery                              every resource with its state
  kubectl describe register invoices                conditions and events
  kubectl explain register.spec.policy              what can be set
  kubectl scale vset/main --replicas=7              one member at a time, never below quorum
  kubectl port-forward service/service-gateway 8080:8080   then http://127.0.0.1:8080/docs
  kubectl get secret chancery-admin -o jsonpath='{.data.password}' | base64 -d   password of admin@example.com
  kubectl delete registers,validatorsets,tenants --all && helm uninstall acme
`;

/** Address of the gateway's Ingress; undefined without one. */
async function ingressUrl(): Promise<string | undefined> {
  const path = 'jsonpath={.status.loadBalancer.ingress[0].ip}{.status.loadBalancer.ingress[0].hostname}';
  const address = await look('get', 'ingress', 'service-gateway', '-o', path);
  return address === '' ? undefined : `https://${address}`;
}

try {
  await confirmCluster();
  await bringUp();
  const gateway = await forward(namespace, 'service-gateway', 8080);
  try {
    await showFeatures(createApi(`http://${gateway.address}`));
  } finally {
    await gateway.stop();
  }
  const url = await ingressUrl();
  const door = url === undefined ? '' : `The gateway behind the Ingress: ${url}\n`;
  write(`\nAll of it took ${duration(performance.now() - steps.startedAt)}.\n${next}${door}`);
} catch (error) {
  write(`${explain(error)}\n${await report(namespace)}`);
  process.exitCode = 1;
}
