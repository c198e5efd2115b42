import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Pool } from 'undici';
import { type WebSocket, WebSocketServer } from 'ws';
import { bearerIn, createTokenCheck } from '../token.ts';
import { openWire } from '../wire.ts';
import { RawActions, type RawPeers } from './actions.ts';
import { actionOf, compileJudges } from './site-permit.ts';
import { openStore } from './store.ts';

/**
 * The minimum of the workflow service for the definition of a site permit. `POST /instances` makes instances of the ids in
 * its body, `POST /actions` is answered once the step is folded, `GET /disclosures/{instanceId}` answers what the caller
 * reads, and a WebSocket at `/{wallet}` has a message of the instance and the action that its wallet can take next.
 * Settings: {key, cert, ca, databaseUrl, schema, clientKey, mintUrl, storeUrl, walletPort, isEncrypted}.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const identity = { key: settings.key, cert: settings.cert, ca: settings.ca };
const check = createTokenCheck(settings.clientKey);
const connect = { ...identity, checkServerIdentity: () => undefined };
const connections = 64;
const tenant = new Pool(settings.mintUrl, { connections, connect });
const ledger = new Pool(settings.storeUrl, { connections, connect });
const wallet = await openWire(identity, settings.walletPort);
const sockets = new Map<string, WebSocket>();

async function send(pool: Pool, method: 'GET' | 'POST', path: string, body?: string): Promise<string> {
  const answer = await pool.request({ method, path, body: body ?? null });
  const said = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}: ${said}`);
  return said;
}

const peers: RawPeers = {
  askWallet: async (request) => {
    const answer = await wallet.call(Buffer.from(JSON.stringify(request)));
    const { value, error } = JSON.parse(answer.toString());
    if (error !== undefined) throw new Error(error);
    return value;
  },
  delegate: async () => JSON.parse(await send(tenant, 'POST', '/', 'grant_type=token-exchange')).access_token,
  submit: async (transaction) => void (await send(ledger, 'POST', '/', transaction)),
  readPayloads: async (txIds) => JSON.parse(await send(ledger, 'GET', `/payloads/${txIds.join()}`)),
};

const actions = new RawActions({
  store: await openStore(settings.databaseUrl, settings.schema),
  peers,
  judges: compileJudges(),
  isEncrypted: settings.isEncrypted,
  folded: ({ instanceId, next }) => {
    if (next !== null) sockets.get(`/${actionOf(next).sender}`)?.send(`${instanceId} ${next}`);
  },
});

/** @returns the answer, as JSON */
async function handle(request: IncomingMessage): Promise<unknown> {
  const token = bearerIn(request.headers.authorization);
  check(token);
  const { url = '' } = request;
  if (url.startsWith('/disclosures/'))
    return actions.disclose(token ?? '', url.slice('/disclosures/'.length));
  const body = JSON.parse(await text(request));
  if (url === '/instances') await actions.start(body);
  else await actions.take(token ?? '', body);
  return { accepted: true };
}

const server = createServer(
  { ...identity, requestCert: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    handle(request).then(
      (answer) => response.setHeader('content-type', 'application/json').end(JSON.stringify(answer)),
      (error: unknown) => {
        response.statusCode = 500;
        response.end(String(error));
      },
    );
  },
);
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket, request) => {
  sockets.set(request.url ?? '', socket);
  socket.on('error', () => socket.terminate());
});
// This program ends with the benchmark, however that ends.
process.once('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
