import { join } from 'node:path';
import type { Pool } from 'undici';
import { walletAddress } from '#core/crypto/address.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { inParallel, until } from '../harness/wait.ts';
import { startRawInstallation } from './raw/installation.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const perRound = 3_000;
const connections = 64;
const rounds = 3;

/** Transactions signed before the clock starts: 0.5 KB of payload, fifty senders. */
export function presign(registerId: string, count: number): readonly string[] {
  const keys = Array.from({ length: 50 }, createOutsideKey);
  return Array.from({ length: count }, (_, n) => {
    const key = keys[n % keys.length] ?? createOutsideKey();
    // members in canonical order: the raw program hashes the text as it came
    const payload = { at: Date.now(), n, note: 'x'.repeat(500) };
    return JSON.stringify(signSubmission(key, { registerId, payload }));
  });
}

async function post(pool: Pool, path: string, token: string, body: string): Promise<void> {
  const answer = await pool.request({
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body,
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) {
    throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
  }
}

/** Confirmed transactions per second of one round: first post to last one stored. */
async function round(
  send: (body: string) => Promise<void>,
  bodies: readonly string[],
  stored: () => Promise<number>,
) {
  const before = await stored();
  const startedAt = performance.now();
  await inParallel(bodies, connections, (body) => send(body));
  await until('all stored', 60_000, async () =>
    (await stored()) >= before + bodies.length ? true : undefined,
  );
  return bodies.length / ((performance.now() - startedAt) / 1000);
}

/** Rows 1 and 2: pre-signed, one a request, 64 connections; at the validator's listener and through the gateway. */
export async function throughput(stage: Stage, validatorUrl: string): Promise<readonly Row[]> {
  const { token, registerId, api } = stage;
  const raw = await startRawInstallation({
    ...stage.svid,
    databaseUrl: stage.rawDatabaseUrl,
    schema: 'throughput',
    logFile: join(stage.dir, 'raw.log'),
    workers: 2,
  });
  const pools = {
    validator: stage.pool(validatorUrl, connections),
    gateway: stage.pool(stage.system.state.gatewayUrl, connections),
    raw: stage.pool(raw.validatorUrl, connections),
    rawStore: stage.pool(raw.storeUrl, 1),
  };
  const path = '/api/v1/transactions/validate';
  const storedByRegister = async (): Promise<number> => {
    const answer = await api.expect(200, 'GET', `/api/registers/${registerId}/transactions?pageSize=1`, {
      token,
    });
    return (answer.body as { totalCount: number }).totalCount;
  };
  const storedByRaw = async (): Promise<number> => {
    const answer = await pools.rawStore.request({ path: '/', method: 'GET' });
    return Number(await answer.body.text());
  };
  const figures = { validator: [] as number[], gateway: [] as number[], raw: [] as number[] };
  for (let n = 0; n <= rounds; n++) {
    const direct = await round(
      (body) => post(pools.validator, path, token, body),
      presign(registerId, perRound),
      storedByRegister,
    );
    const bare = await round(
      (body) => post(pools.raw, '/', token, body),
      presign(registerId, perRound),
      storedByRaw,
    );
    const through = await round(
      (body) => post(pools.gateway, path, token, body),
      presign(registerId, perRound),
      storedByRegister,
    );
    if (n > 0) {
      figures.validator.push(direct);
      figures.raw.push(bare);
      figures.gateway.push(through);
    }
  }
  await Promise.all(Object.values(pools).map((pool) => pool.close()));
  await raw.stop();
  return [
    {
      measure: 'confirmed tx/s, validator listener, 64 connections',
      ours: figures.validator,
      raw: figures.raw,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.45 },
    },
    {
      measure: 'the same through the gateway',
      ours: figures.gateway,
      raw: figures.raw,
      unit: '/s',
      bound: { kind: 'printed' },
    },
  ];
}

/** The first half warms both programs up and is not counted. */
const samples = 400;

/** Row 3: one transaction at a time on an idle system, submit to confirmed. */
export async function latency(stage: Stage, registerUrl: string): Promise<Row> {
  const raw = await startRawInstallation({
    ...stage.svid,
    databaseUrl: stage.rawDatabaseUrl,
    schema: 'latency',
    logFile: join(stage.dir, 'raw-latency.log'),
    workers: 1,
  });
  const pools = { ours: stage.pool(registerUrl, 1), raw: stage.pool(raw.storeUrl, 1) };
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (const text of presign(stage.registerId, samples)) {
    const submission = JSON.parse(text);
    const [signature] = submission.Signatures;
    const ready = JSON.stringify({
      transactionType: 'Action',
      senderAddress: walletAddress('ED25519', Buffer.from(signature.PublicKey, 'base64')),
      payload: Buffer.from(JSON.stringify(submission.Payload)).toString('base64'),
      transactionId: submission.TransactionId,
      payloadHash: submission.PayloadHash,
      createdAt: submission.CreatedAt,
      metadata: {
        ...submission.Metadata,
        blueprintId: submission.BlueprintId,
        actionId: submission.ActionId,
      },
      signatures: [
        {
          publicKey: signature.PublicKey,
          signatureValue: signature.SignatureValue,
          algorithm: signature.Algorithm,
        },
      ],
    });
    const path = `/api/registers/${stage.registerId}/transactions?wait=confirmed&timeout=10`;
    figures.ours.push(await timed(() => post(pools.ours, path, stage.token, ready)));
    figures.raw.push(await timed(() => post(pools.raw, '/', stage.token, text)));
  }
  await Promise.all(Object.values(pools).map((pool) => pool.close()));
  await raw.stop();
  return {
    measure: 'submit to confirmed, idle, p50',
    ours: figures.ours.slice(samples / 2),
    raw: figures.raw.slice(samples / 2),
    unit: 'ms',
    bound: { kind: 'multiple', atMost: 2.5 },
  };
}

async function timed(act: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
