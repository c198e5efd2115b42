import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ApiServer } from '../../cluster/kubectl.ts';
import { edit } from './edits.ts';
import { follow, isSettled, type ObjectFollower } from './follow.ts';

const path = '/apis/chancery.dev/v1alpha1/namespaces/bench/tenants';

let server: Server;
let watch: ServerResponse;
let api: ApiServer;
let followed: ObjectFollower;

const tell = (type: string, generation: number, observedGeneration: number, status = 'True') => {
  const conditions = [{ type: 'Ready', status, message: 'still on its way' }];
  const object = {
    metadata: { name: 'acme', generation },
    status: { observedGeneration, conditions },
  };
  watch.write(`${JSON.stringify({ type, object })}\n`);
};
const seen = () => followed.objects.get('acme');

beforeEach(async () => {
  server = createServer((_, response) => {
    watch = response;
    response.flushHeaders();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  api = {
    url: `http://127.0.0.1:${port}`,
    request: async () => ({ status: 200, body: { metadata: { generation: 2 } } }),
    stop: async () => undefined,
  };
  followed = await follow(api, path);
});

afterEach(async () => {
  await followed.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('a condition holds with the event that fulfils it', async () => {
  const settled = followed.until('acme is Ready', 5_000, () => {
    const acme = seen();
    return acme !== undefined && isSettled(acme);
  });
  tell('ADDED', 1, 0, 'False');
  tell('MODIFIED', 1, 1);
  await settled;
  const gone = followed.until('acme is gone', 5_000, () => followed.objects.size === 0);
  tell('DELETED', 1, 1);
  await gone;
});

test('an edit lasts until its own generation is reconciled', async () => {
  tell('ADDED', 1, 1);
  await followed.until('acme', 5_000, () => seen()?.generation === 1);
  let isOver = false;
  const served = edit({ api }, followed, 'acme', { displayName: 'Acme' }).then(() => {
    isOver = true;
  });
  tell('MODIFIED', 2, 1);
  await followed.until('the change', 5_000, () => seen()?.generation === 2);
  expect(isOver).toBe(false);
  tell('MODIFIED', 2, 2);
  await served;
});

test('the missing objects are named at the deadline', async () => {
  tell('ADDED', 1, 0, 'False');
  await followed.until('acme', 5_000, () => followed.objects.size === 1);
  await expect(followed.until('all are Ready', 20, () => false)).rejects.toThrow(
    'all are Ready: not within 0.02 s. 0 of 1 are Ready. acme: still on its way',
  );
});

test('a wait ends with its watch', async () => {
  const waiting = followed.until('never', 5_000, () => false);
  watch.end();
  await expect(waiting).rejects.toThrow('ended');
  await expect(followed.until('never', 5_000, () => false)).rejects.toThrow('ended');
});
