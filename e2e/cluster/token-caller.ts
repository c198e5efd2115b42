import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { z } from 'zod';
import { CA_CONFIG_MAP } from './identity-manifests.ts';
import { installation, namespace } from './installed.ts';
import { kubectl } from './kubectl.ts';
import { runProbe } from './probe.ts';

/** One request to the tenant service's token listener, or to another listener with mutual TLS. */
export interface TokenListenerRequest {
  /** The pod's SVID, no certificate, or another one as PEM. */
  readonly by: 'svid' | 'nothing' | { readonly key: string; readonly cert: string };
  readonly form?: Readonly<Record<string, string>>;
  /** The token route when absent. */
  readonly path?: string;
  /** POST when absent. */
  readonly method?: string;
  /** Newest TLS version of the caller; 1.3 when absent. */
  readonly newest?: 'TLSv1.2';
  /** The token listener when absent. */
  readonly to?: MutualTlsListener;
}

/** A listener with mutual TLS, and the SPIFFE id that the caller expects. */
export interface MutualTlsListener {
  readonly host: string;
  readonly port: number;
  readonly id: string;
}

const responses = z.union([
  z.object({ status: z.number(), body: z.record(z.string(), z.unknown()) }),
  /** Error of the connection. */
  z.object({ refused: z.string() }),
]);
const answers = z.object({ id: z.string(), responses: z.record(z.string(), responses) });

/** Responses to a pod's requests by name, and its SPIFFE id. */
export type Answers = z.output<typeof answers>;

/** A pod that calls with the identity of its ServiceAccount. */
export interface Caller {
  /** Name of the pod. */
  readonly name: string;
  readonly serviceAccount: string;
  /** The service for which the NetworkPolicies take the pod; the wallet service when absent. */
  readonly takenFor?: string;
}

const TOKEN_PATH = '/api/internal/service-auth/token';

/** Obtains its SVID like every pod, then sends the requests in order. */
const script = `
const { readFileSync } = require('node:fs');
const { request } = require('node:https');
const { connect } = require('node:net');
const { issuer, listener, ca, csr, key, asks, tokenPath } = JSON.parse(process.env.QUESTION);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const send = (server, options, body) => new Promise((resolve, reject) => {
  const checkServerIdentity = (_, { subjectaltname }) =>
    subjectaltname.split(', ').includes('URI:' + server.id) ? undefined : new Error('it is ' + subjectaltname);
  const { host, port } = server;
  const asked = request({ host, port, ca, checkServerIdentity, agent: false, timeout: 10000, ...options }, (answer) => {
    let text = '';
    answer.setEncoding('utf8');
    answer.on('data', (part) => { text += part; });
    answer.on('end', () => resolve({ status: answer.statusCode, body: JSON.parse(text) }));
  });
  asked.on('timeout', () => asked.destroy(new Error('silent')));
  asked.on('error', reject);
  asked.end(body);
});

// a new pod's policies take a moment
const reach = async ({ host, port }) => {
  for (let tries = 1; ; tries += 1) {
    const found = await new Promise((resolve) => {
      const socket = connect({ host, port, timeout: 2000 });
      const end = (said) => { socket.destroy(); resolve(said); };
      socket.once('connect', () => end('open'));
      socket.once('timeout', () => end('silent'));
      socket.once('error', (error) => end(error.code));
    });
    if (found === 'open') return;
    if (tries === 20) throw new Error(host + ':' + port + ' is ' + found);
    await pause(250);
  }
};

const fetchSvid = async () => {
  const headers = { authorization: 'Bearer ' + readFileSync('/token/token', 'utf8'), 'content-type': 'application/json' };
  const { status, body } = await send(issuer, { path: '/svid', method: 'POST', headers }, JSON.stringify({ csr }));
  if (status !== 200) throw new Error('no SVID: ' + status + ' ' + JSON.stringify(body));
  return body;
};

const ask = async ({ by, form = {}, path = tokenPath, method = 'POST', newest, to = listener }, svid) => {
  const own = by === 'svid' ? { key, cert: svid.chain } : by === 'nothing' ? {} : by;
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const options = { path, method, headers, ...own, ...(newest && { maxVersion: newest }) };
  try {
    return await send(to, options, method === 'GET' ? undefined : new URLSearchParams(form).toString());
  } catch (error) {
    return { refused: error.code ?? error.message };
  }
};

(async () => {
  await reach(issuer);
  await reach(listener);
  const svid = await fetchSvid();
  const responses = {};
  for (const [name, one] of Object.entries(asks)) responses[name] = await ask(one, svid);
  console.log(JSON.stringify({ id: svid.spiffeId, responses }));
})();
`;

/** Sends the requests from a pod with the identity of its ServiceAccount, under the NetworkPolicies. */
export async function requestFrom(
  { takenFor = 'service-wallet', ...caller }: Caller,
  asks: Readonly<Record<string, TokenListenerRequest>>,
): Promise<Answers> {
  const keys = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
    'verify',
  ]);
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: 'CN=workload',
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
  });
  const id = (clientId: string) => `spiffe://${installation}/service/${clientId}`;
  const at = (name: string) => ({ host: `${name}.${namespace}.svc`, port: 8443, id: id(name) });
  const question = {
    issuer: at('svid-issuer'),
    listener: at('service-tenant'),
    ca: await kubectl('get', 'configmap', CA_CONFIG_MAP, '-n', namespace, '-o', 'jsonpath={.data.ca\\.crt}'),
    csr: request.toString('pem'),
    key: KeyObject.from(keys.privateKey).export({ format: 'pem', type: 'pkcs8' }),
    asks,
    tokenPath: TOKEN_PATH,
  };
  const output = await runProbe({
    namespace,
    ...caller,
    // the NetworkPolicies allow this service to call the listeners
    labels: { 'app.kubernetes.io/part-of': 'chancery', 'chancery.dev/client-id': takenFor },
    audience: id('svid-issuer'),
    script,
    env: { QUESTION: JSON.stringify(question) },
  });
  return answers.parse(JSON.parse(output));
}
